// What merchants may write. It compiles, or the types are wrong.

import { loadSvc } from "../npm/load";
import { type ButtonConfig, Svc, type SvcError, type SvcInstance } from "../npm/svc";
import type { SvcInstance as Built } from "../src/svc/public";

const smallest: ButtonConfig = { createOrder: () => "01JC4E9V7Q3M8Y5T2K6R1N0WXZ" };

const whole: ButtonConfig = {
  createOrder: async () => "01JC4E9V7Q3M8Y5T2K6R1N0WXZ",
  onApprove: async (data, actions) => {
    const id: string = data.payment.orderId;
    actions.onPopupWindowClosed(() => location.assign(`/success?orderId=${id}`));
  },
  onPending: (data) => {
    const reference: string | undefined = data.payment.data.paymentReference;
    const entity: string | undefined = data.payment.data.entity?.number;
    return [reference, entity];
  },
  onCancel: () => undefined,
  onError: (error: SvcError) => [error.code, error.recoverable, error.requestId],
  options: {
    style: { width: "100%", shape: "pill" },
    config: { lang: "pt", showAmount: true },
    paymentConfig: {
      theme: "light",
      allowedPaymentMethods: ["FPMCXEXPRSS", "FPSOLPGEXT"],
      showUIOfProcessingInfo: true,
      referencePaymentLifeSpan: 1440,
    },
  },
};

export async function use(): Promise<void> {
  const one = await Svc("pk_test_x", { serviceUrl: "https://api.example.ao" })
    .generateButton(smallest)
    .render("#pay");
  one.destroy();
  const loaded = await loadSvc("https://api.example.ao");
  await loaded?.("pk_test_x").generateButton(whole).render(document.body);
}

// The published types and the source say the same, both ways.
export const published = (source: Built): SvcInstance => source;
export const source = (types: SvcInstance): Built => types;
