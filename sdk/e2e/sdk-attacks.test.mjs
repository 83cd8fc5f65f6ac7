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

test("a window of no origin, which a frame of no origin opened, is not heard", async () => {
  const visitor = await underWay();
  const { page, nonce } = visitor;
  await page.evaluate((src) => {
    window.origins = [];
    addEventListener("message", (event) => window.origins.push(event.origin));
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-popups");
    frame.src = src;
    frame.id = "attacker";
    document.body.append(frame);
  }, `${stage.merchant.origin}/x`);
  const frame = await (await page.waitForSelector("#attacker")).contentFrame();
  await frame.waitForLoadState();
  const opened = page.context().waitForEvent("page");
  await frame.evaluate(() => void open("/x"));
  const attacker = await opened;
  await attacker.waitForLoadState();
  await attacker.evaluate((said) => opener.parent.postMessage(said, "*"), { ...PAID, nonce });
  await page.waitForFunction('origins.includes("null")');
  await isNotFooled(visitor);
});

for (const [what, told] of Object.entries({
  "the window was closed": { type: "close" },
  "the payer gave up": { screen: "cancelled", payment: { ...PAID.payment, paymentStatus: "CAN" } },
})) {
  test(`a stranger who says that ${what} is not heard`, async () => {
    const visitor = await underWay();
    const from = `${stage.merchant.elsewhere}/x`;
    await send(visitor, [{ ...PAID, nonce: visitor.nonce, ...told }], { from });
    await isNotFooled(visitor);
  });
}

test("guessing the nonce ten thousand times is not heard, and the payment goes on", async () => {
  const visitor = await underWay();
  const guesses = Array.from({ length: 10_000 }, (_, n) => ({
    ...PAID,
    nonce: n.toString(16).padStart(32, "0"),
  }));
  await send(visitor, guesses, { from: `${stage.service.baseUrl}/docs` });
  await settle(visitor.page, 5_000);
  assert.deepEqual(await calls(visitor.page), []);
  await checkout.cancel(visitor.popup);
  await visitor.page.waitForFunction("calls.length === 1");
  await visitor.leave();
});

for (const whose of ["elsewhere", "origin"]) {
  test(`the right window is not believed once it was led to a page of ${whose === "origin" ? "the shop" : "a stranger"}`, async () => {
    const visitor = await underWay();
    const { page, popup, nonce, made, leave } = visitor;
    const led = `${stage.merchant[whose]}/x`;
    // By a script: led by the browser itself it would lose sight of who opened it.
    await popup.evaluate((url) => location.assign(url), led);
    await popup.waitForURL(led);
    await popup.evaluate((said) => opener.postMessage(said, "*"), { ...PAID, nonce });
    await settle(page, 5_000);
    // The payer left the checkout, which may be told; that somebody paid may not.
    assert.ok(!(await calls(page)).some(([name]) => name === "approve"));
    assert.equal(await stage.service.statusOf(made[0]), "PEN");
    await leave();
  });
}

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

test("the right message of the right window is believed: what the others spoil", async () => {
  const visitor = await underWay({ allowed: [/ERR_FAILED/] });
  const { context, popup, page, nonce } = visitor;
  // Nothing but the message can tell.
  await context.route("**/state?*", (route) => route.abort());
  const origin = new URL(page.url()).origin;
  const message = { ...PAID, nonce };
  await popup.evaluate(([said, target]) => opener.postMessage(said, target), [message, origin]);
  await page.waitForFunction("calls.length === 1");
  assert.equal((await calls(page))[0][0], "approve");
  await visitor.leave();
});

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
