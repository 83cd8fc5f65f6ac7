// Pages that pretend: whatever they send, no callback fires, nothing is framed, nobody is led away.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import { calls, openWindow, settle, shopper } from "./support/sdk.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

const PAID = {
  source: "svc-checkout",
  type: "state",
  screen: "paid",
  payment: { paymentStatus: "CON", orderId: "order_1", data: {} },
};

/** A payment under way, with its nonce as the checkout's address has it. */
async function underWay(options) {
  const visitor = await shopper(stage, options);
  const popup = await openWindow(visitor);
  const nonce = new URL(popup.url()).searchParams.get("nonce");
  return { ...visitor, popup, nonce };
}

/** The page has had its chance to be fooled. */
async function isNotFooled(visitor) {
  await settle(visitor.page, 5_000);
  assert.deepEqual(await calls(visitor.page), []);
  assert.equal(await stage.service.statusOf(visitor.made[0]), "PEN");
  await visitor.leave();
}

/** A window or frame of the shop's page, at this address, sends these messages to it. */
async function send(visitor, messages, { from, framed = false, sandbox }) {
  const { page } = visitor;
  if (framed) {
    await page.evaluate(
      ([src, limits]) => {
        const frame = document.createElement("iframe");
        if (limits) frame.setAttribute("sandbox", limits);
        frame.src = src;
        frame.id = "attacker";
        document.body.append(frame);
      },
      [from, sandbox],
    );
    const handle = await page.waitForSelector("#attacker");
    const frame = await handle.contentFrame();
    await frame.waitForLoadState();
    await frame.evaluate((all) => {
      for (const message of all) parent.postMessage(message, "*");
    }, messages);
  } else {
    const opened = page.waitForEvent("popup");
    await page.evaluate((url) => void window.open(url, "attacker"), from);
    const attacker = await opened;
    await attacker.waitForLoadState();
    await attacker.evaluate((all) => {
      for (const message of all) opener.postMessage(message, "*");
    }, messages);
  }
}

test("a message of the page itself is not the checkout's", async () => {
  const visitor = await underWay();
  await visitor.page.evaluate((message) => postMessage(message, "*"), {
    ...PAID,
    nonce: visitor.nonce,
  });
  await isNotFooled(visitor);
});

test("a window of another origin is not heard, even with the nonce", async () => {
  const visitor = await underWay();
  const from = `${stage.merchant.elsewhere}/x`;
  await send(visitor, [{ ...PAID, nonce: visitor.nonce }], { from });
  await isNotFooled(visitor);
});

test("a frame of another origin is not heard", async () => {
  const visitor = await underWay();
  const from = `${stage.merchant.elsewhere}/x`;
  await send(visitor, [{ ...PAID, nonce: visitor.nonce }], { from, framed: true });
  await isNotFooled(visitor);
});

test("a frame without an origin is not heard", async () => {
  const visitor = await underWay();
  const how = { from: `${stage.merchant.origin}/x`, framed: true, sandbox: "allow-scripts" };
  await send(visitor, [{ ...PAID, nonce: visitor.nonce }], how);
  await isNotFooled(visitor);
});

test("another window of the service's own origin is not heard", async () => {
  const visitor = await underWay();
  const from = `${stage.service.baseUrl}/docs`;
  await send(visitor, [{ ...PAID, nonce: visitor.nonce }], { from });
  await isNotFooled(visitor);
});

/** What the right window itself may say without being believed. */
const WRONG = {
  "no nonce": ({ nonce, ...message }) => message,
  "another nonce": (message) => ({ ...message, nonce: "0".repeat(32) }),
  "a nonce that is no text": (message) => ({ ...message, nonce: [message.nonce] }),
  "another source": (message) => ({ ...message, source: "checkout" }),
  "no payment": ({ payment, ...message }) => message,
  "a payment that is a text": (message) => ({ ...message, payment: "CON" }),
  "a status of its own making": (message) => ({
    ...message,
    payment: { ...message.payment, paymentStatus: "PAID" },
  }),
  "a payment without data": (message) => ({
    ...message,
    payment: { ...message.payment, data: null },
  }),
  "a screen that is no text": (message) => ({ ...message, screen: { paid: true } }),
  "a text": (message) => JSON.stringify(message),
  nothing: () => null,
};

for (const [what, spoil] of Object.entries(WRONG)) {
  test(`a message with ${what} is not believed`, async () => {
    const visitor = await underWay();
    const { popup, page, nonce } = visitor;
    const message = spoil({ ...PAID, nonce });
    const origin = new URL(page.url()).origin;
    await popup.evaluate(([said, target]) => opener.postMessage(said, target), [message, origin]);
    await isNotFooled(visitor);
  });
}

test("a message of an earlier payment says nothing about the next", async () => {
  const visitor = await underWay();
  const { popup, page, button, nonce: old, made, leave } = visitor;
  await checkout.cancel(popup);
  await page.waitForFunction("calls.length === 1");
  await popup.close();
  await settle(page, 2_000);
  const second = await openWindow({ page, button });
  const origin = new URL(page.url()).origin;
  const message = { ...PAID, nonce: old };
  await second.evaluate(([said, target]) => opener.postMessage(said, target), [message, origin]);
  await settle(page, 5_000);
  assert.deepEqual((await calls(page)).length, 1);
  assert.equal(await stage.service.statusOf(made[1]), "PEN");
  await leave();
});

test("the checkout never leads the shop's window away", async () => {
  const visitor = await underWay();
  const { popup, page } = visitor;
  const before = page.url();
  await checkout.cancel(popup);
  await checkout.on(popup, "cancelled");
  await checkout.goBack(popup);
  await page.waitForFunction("calls.length === 1");
  assert.equal(page.url(), before);
  await visitor.leave();
});
