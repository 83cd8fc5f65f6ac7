// What merchants may not write. Each line is wrong, or the types are.

import { type ButtonConfig, Svc } from "../npm/svc";

// @ts-expect-error createOrder is required
export const empty: ButtonConfig = {};
// @ts-expect-error createOrder gives a text
export const number: ButtonConfig = { createOrder: () => 42 };
const createOrder = () => "01JC4E9V7Q3M8Y5T2K6R1N0WXZ";
// @ts-expect-error there is no such shape
export const shape: ButtonConfig = { createOrder, options: { style: { shape: "round" } } };
// @ts-expect-error there is no such language
export const lang: ButtonConfig = { createOrder, options: { config: { lang: "de" } } };
export const methods: ButtonConfig = {
  createOrder,
  // @ts-expect-error there is no such method
  options: { paymentConfig: { allowedPaymentMethods: ["CARD"] } },
};
// @ts-expect-error a key is a text
Svc(5, { serviceUrl: "https://api.example.ao" });
// @ts-expect-error a module must be told where the service is
Svc("pk_test_x");
