// What the shop's window hears from the checkout it opened or framed, and what nobody else does.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import { startMerchant } from "./support/merchant.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();
let stranger;
before(async () => {
  stranger = await startMerchant();
});
after(() => stranger.stop());

const NONCE = "n0nce-0123456789abcdef0123456789abcdef";

// What browsers write in the console when they keep a message or a frame from a stranger.
const WITHHELD = /Failed to execute 'postMessage'/;
const NOT_FRAMED = /frame-ancestors/;

const heard = (page) => page.evaluate("heard");

/** A page of `shop` that opens the checkout in a window, as a click on its button does. */
async function openPopup(shop, order, options) {
  const visitor = await stage.payer(options);
  const url = order.url({ nonce: NONCE });
  await visitor.page.goto(`${shop}/popup?${new URLSearchParams({ url })}`);
  const opened = visitor.page.waitForEvent("popup");
  await visitor.page.getByRole("button").click();
  const popup = await opened;
  await checkout.on(popup, "choose");
  return { ...visitor, popup };
}

/** A page of `shop` that frames the checkout. */
async function openFrame(shop, order, options) {
  const visitor = await stage.payer(options);
  const url = order.url({ nonce: NONCE });
  await visitor.page.goto(`${shop}/frame?${new URLSearchParams({ url })}`);
  return { ...visitor, frame: visitor.page.frames()[1] };
}

/** The browser says that it does not show the checkout there, and does not. */
async function isNotFramed(shop, order, allowed) {
  const visitor = await stage.payer({ allowed: [NOT_FRAMED, ...allowed] });
  const { page, leave } = visitor;
  const refused = page.waitForEvent("console", (line) => NOT_FRAMED.test(line.text()));
  const url = order.url({ nonce: NONCE });
  await page.goto(`${shop}/frame?${new URLSearchParams({ url })}`);
  await refused;
  assert.equal(await page.frameLocator("iframe").locator("main").count(), 0);
  assert.deepEqual(await heard(page), []);
  await leave();
}

/** The shop has heard of this screen. */
function heardOf(page, screen) {
  return page.waitForFunction((wanted) => heard.some((one) => one.screen === wanted), screen);
}

test("the shop that opened a window hears of each screen once, with the payment", async () => {
  const order = await stage.order();
  const { page, popup, leave } = await openPopup(stage.merchant.origin, order);
  await checkout.pushTo(popup, "900000001");
  await checkout.on(popup, "waiting");
  await stage.service.advance(30);
  await checkout.look(popup, "paid");
  await heardOf(page, "paid");
  const messages = await heard(page);
  assert.deepEqual(
    messages.map(({ screen }) => screen),
    ["choose", "phone", "waiting", "paid"],
  );
  for (const message of messages) {
    const { origin, mine, source, nonce, type, payment } = message;
    assert.deepEqual(
      { origin, mine, source, nonce, type },
      {
        origin: stage.service.baseUrl,
        mine: true,
        source: "svc-checkout",
        nonce: NONCE,
        type: "state",
      },
    );
    assert.equal(payment.orderId, order.externalTransactionId);
    assert.equal(payment.referenceNumber, order.referenceNumber);
    assert.equal(payment.amount, 15_000);
    assert.equal(payment.currency, "AOA");
  }
  assert.equal(messages[0].payment.paymentStatus, "PEN");
  assert.equal(messages[3].payment.paymentStatus, "CON");
  assert.equal(messages[3].payment.method, "FPMCXEXPRSS");
  assert.ok(!JSON.stringify(messages).includes("900000001"), "the payer's number stays here");
  await leave();
});

test("the shop hears the entity and reference that were issued", async () => {
  const order = await stage.order();
  const { page, popup, leave } = await openPopup(stage.merchant.origin, order);
  await checkout.chooseReference(popup);
  await heardOf(page, "reference");
  const { payment } = (await heard(page)).at(-1);
  const [entity, reference] = await checkout.slip(popup);
  assert.equal(payment.method, "FPSOLPGEXT");
  assert.equal(payment.data.entity.number, entity);
  assert.equal(payment.data.paymentReference, reference.replaceAll(" ", ""));
  assert.ok(Date.parse(payment.data.expiresAt) > Date.parse(payment.createdAt));
  await leave();
});

test("the way back to the shop says so, and is gone where nobody listens", async () => {
  const order = await stage.order();
  const { page, popup, leave } = await openPopup(stage.merchant.origin, order);
  await checkout.cancel(popup);
  await checkout.on(popup, "cancelled");
  await popup.getByText("Voltar à loja").click();
  // This page only listens. One with the SDK closes the window; else the link does what it says.
  await popup.waitForURL(/status=CAN/);
  const { type, screen, payment } = (await heard(page)).at(-1);
  assert.deepEqual([type, screen, payment.paymentStatus], ["close", "cancelled", "CAN"]);
  assert.ok(page.url().startsWith(`${stage.merchant.origin}/popup`), "the shop stays where it is");
  await leave();
});

test("a stranger who opens the window hears nothing", async () => {
  const order = await stage.order();
  const allowed = [WITHHELD];
  const { page, popup, leave } = await openPopup(stranger.origin, order, { allowed });
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await checkout.look(popup, "paid");
  assert.deepEqual(await heard(page), []);
  await leave();
});

test("nothing a stranger posts to the checkout changes it", async () => {
  const order = await stage.order();
  const { page, popup, leave } = await openPopup(stage.merchant.origin, order);
  await page.evaluate((nonce) => {
    for (const type of ["state", "close", "paid"]) {
      child.postMessage({ source: "svc-checkout", nonce, type, screen: "paid" }, "*");
    }
  }, NONCE);
  await checkout.chooseReference(popup);
  assert.equal(await stage.service.statusOf(order), "PEN");
  await leave();
});

test("the shop of the order may frame the checkout, and hears from it there", async () => {
  const order = await stage.order();
  const { page, frame, leave } = await openFrame(stage.merchant.origin, order);
  await frame.locator('main[data-screen="choose"]').waitFor();
  await heardOf(page, "choose");
  await frame.locator('form:has([value="FPSOLPGEXT"]) button').waitFor();
  await page.clock.fastForward(500);
  await frame.locator('form:has([value="FPSOLPGEXT"]) button').click();
  await frame.locator('main[data-screen="reference"]').waitFor();
  await frame.getByText("Voltar à loja").click();
  await page.waitForFunction(() => heard.some((one) => one.type === "close"));
  const messages = await heard(page);
  assert.deepEqual([...new Set(messages.map(({ origin }) => origin))], [stage.service.baseUrl]);
  assert.ok(messages.every(({ mine, nonce }) => mine && nonce === NONCE));
  assert.ok(frame.url().startsWith(stage.service.baseUrl), "the frame does not load the shop");
  await leave();
});

test("no other origin may frame the checkout", async () => {
  const order = await stage.order();
  await isNotFramed(stranger.origin, order, []);
  await isNotFramed(stage.merchant.elsewhere, order, []);
});

test("nobody may frame the page that says an order was not found", async () => {
  const order = await stage.order();
  const gone = { url: () => order.url().replace(order.referenceNumber, "unknown") };
  await isNotFramed(stage.merchant.origin, gone, [/status of 404/]);
});
