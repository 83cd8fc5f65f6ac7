// How a payment ends for the page, whatever comes in whatever order.
import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./support.mjs";

const { verdict, asView } = await load("src/svc/verdict.ts");

const payment = (paymentStatus, data = {}) => ({ paymentStatus, orderId: "order_1", data });
const view = (screen, status, data) => ({ screen, payment: payment(status, data) });
const NOTHING = { paymentReference: "", entity: { number: "", name: "" } };
const CODE = { ...NOTHING, expiresAt: "2026-11-15T09:30:00Z" };
const REFERENCE = { ...CODE, paymentReference: "123456789" };

test("each situation has one end", () => {
  const cases = [
    [undefined, false, false, undefined],
    [undefined, true, false, "cancel"],
    [view("paid", "CON"), false, false, "approve"],
    [view("paid", "CON"), true, false, "approve"],
    [view("cancelled", "CAN"), false, false, "cancel"],
    [view("expired", "CAN"), true, true, "cancel"],
    [view("choose", "PEN"), false, false, undefined],
    [view("choose", "PEN"), true, false, "cancel"],
    [view("code", "PEN", CODE), true, false, "pending"],
    [view("refused", "PEN", CODE), true, false, "pending"],
    [view("refused", "PEN", NOTHING), true, false, "cancel"],
    [view("reference", "PEN", REFERENCE), false, false, undefined],
    [view("reference", "PEN", REFERENCE), true, false, "pending"],
    [view("choose", "PEN", REFERENCE), true, false, "pending"],
    [view("waiting", "PEN"), false, false, undefined],
    [view("waiting", "PEN"), true, false, undefined],
    [view("confirming", "PEN"), true, false, undefined],
    [view("confirming", "PEN"), true, true, "pending"],
  ];
  for (const [seen, gone, waitedEnough, end] of cases) {
    const told = JSON.stringify({ seen, gone, waitedEnough });
    assert.equal(verdict(seen, gone, waitedEnough), end, told);
  }
});

test("what is not a view is nothing", () => {
  assert.ok(asView("choose", payment("PEN")));
  const strange = [null, 5, "x", [], {}, { paymentStatus: "PAID", orderId: "a", data: {} }];
  for (const given of [...strange, { paymentStatus: "CON", data: {} }, payment("CON", null)]) {
    assert.equal(asView("paid", given), undefined, JSON.stringify(given));
  }
  assert.equal(asView(5, payment("PEN")), undefined);
});
