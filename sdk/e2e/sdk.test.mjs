// The SDK on a shop's page: every end of a payment, every moment at which a window can be closed.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import {
  called,
  calls,
  closed,
  loaded,
  openWindow,
  settle,
  shopper,
  toldClosed,
} from "./support/sdk.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

/** The window is closed and the shop's page has noticed. */
async function close(page, popup) {
  await popup.close();
  await stage.service.advance(4);
  await settle(page, 4_000);
}

test("a paid order is approved once, and the page moves on when the window is closed", async () => {
  const visitor = await shopper(stage);
  const { page, made, leave } = visitor;
  const popup = await openWindow(visitor);
  await checkout.pushTo(popup, "900000001");
  await stage.service.advance(30);
  await checkout.look(popup, "paid");
  const [, payment] = await called(page, "approve");
  assert.equal(payment.orderId, made[0].externalTransactionId);
  assert.equal(payment.paymentStatus, "CON");
  assert.deepEqual(await closed(page), [], "the window is still open");
  await checkout.goBack(popup);
  await toldClosed(page, "approve");
  await settle(page);
  await called(page, "approve");
  await stage.merchant.told(made[0], "CON");
  await leave();
});

test("a window that is closed with a reference is pending, with entity and reference", async () => {
  const visitor = await shopper(stage);
  const { page, made, leave } = visitor;
  const popup = await openWindow(visitor);
  await checkout.chooseReference(popup);
  const [entity, reference] = await checkout.slip(popup);
  await close(page, popup);
  const [, payment] = await called(page, "pending");
  assert.equal(payment.data.entity.number, entity);
  assert.equal(payment.data.paymentReference, reference.replaceAll(" ", ""));
  await toldClosed(page, "pending");
  await stage.service.advance(60);
  assert.equal(await stage.service.statusOf(made[0]), "PEN");
  await leave();
});

test("a push that went out as the window was closed is not called cancelled", async () => {
  const visitor = await shopper(stage);
  const { page, made, leave } = visitor;
  const popup = await openWindow(visitor);
  // The window is closed before it, or the shop's page, has seen what came of the click.
  const form = popup.locator("form", { has: popup.locator("input[name=method]") }).first();
  const target = new URL(await form.getAttribute("action"), stage.service.baseUrl);
  const session = await form.locator("input[name=session]").getAttribute("value");
  const body = new URLSearchParams({ session, method: "FPMCXEXPRSS", phone: "900000001" });
  const sent = await fetch(target, { method: "POST", body, redirect: "manual" });
  assert.equal(sent.status, 303);
  await popup.close();
  await settle(page, 4_000);
  assert.deepEqual(await calls(page), [], "money may be moving");
  await stage.service.advance(30);
  await settle(page, 4_000);
  await called(page, "approve");
  await stage.merchant.told(made[0], "CON");
  await leave();
});

test("a reference is not handed out for a push that went out as the window was closed", async () => {
  const visitor = await shopper(stage);
  const { page, made, leave } = visitor;
  const popup = await openWindow(visitor);
  const form = popup.locator("form", { has: popup.locator("input[name=method]") }).first();
  const target = new URL(await form.getAttribute("action"), stage.service.baseUrl);
  const session = await form.locator("input[name=session]").getAttribute("value");
  await checkout.chooseReference(popup);
  await settle(page);
  const body = new URLSearchParams({ session, method: "FPMCXEXPRSS", phone: "900000001" });
  const sent = await fetch(target, { method: "POST", body, redirect: "manual" });
  assert.equal(sent.status, 303);
  await popup.close();
  await settle(page, 4_000);
  assert.deepEqual(await calls(page), [], "the reference on its screen is not what is being paid");
  await stage.service.advance(30);
  await settle(page, 4_000);
  await called(page, "approve");
  await stage.merchant.told(made[0], "CON");
  await leave();
});

test("a page of another origin than returnUrl's hears of the payment from the service", async () => {
  // Its window speaks to the order's origin only.
  const allowed = [/does not match the recipient window's origin/];
  const visitor = await shopper(stage, { origin: stage.merchant.elsewhere, allowed });
  const { page, leave } = visitor;
  const popup = await openWindow(visitor);
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await checkout.look(popup, "paid");
  await settle(page, 4_000);
  await called(page, "approve");
  await leave();
});

test("a page that cannot ask how it went does not say that it was cancelled", async () => {
  const visitor = await shopper(stage, { origin: stage.merchant.elsewhere });
  const { page, made } = visitor;
  await page.route("**/state?*", (route) => route.abort());
  const popup = await openWindow(visitor);
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await checkout.look(popup, "paid");
  await close(page, popup);
  await settle(page, 20_000);
  const [, error] = await called(page, "error");
  assert.equal(error.code ?? error, "network");
  assert.equal(await stage.service.statusOf(made[0]), "CON");
  // Its console is full of what the browser refused.
  await page.context().close();
});

test("an order cancelled in the window is cancelled on the page", async () => {
  const visitor = await shopper(stage);
  const popup = await openWindow(visitor);
  await checkout.cancel(popup);
  await called(visitor.page, "cancel");
  await settle(visitor.page);
  await called(visitor.page, "cancel");
  await visitor.leave();
});

test("a window closed before there is an order cancels", async () => {
  let give;
  const order = new Promise((resolve) => {
    give = resolve;
  });
  const visitor = await shopper(stage, { orders: () => order });
  const { page, button, leave } = visitor;
  const opened = page.waitForEvent("popup");
  await button.click();
  const popup = await opened;
  assert.equal(await popup.locator("html").getAttribute("lang"), "pt", "it is read aloud");
  await popup.close();
  await settle(page, 1_000);
  await called(page, "cancel");
  give((await stage.order()).referenceNumber);
  await settle(page);
  await called(page, "cancel");
  assert.equal(page.context().pages().length, 1, "nothing is opened any more");
  await leave();
});

test("a window closed while the checkout loads cancels", async () => {
  const visitor = await shopper(stage);
  const { page, button, context, leave } = visitor;
  // The page is on its way and never arrives.
  let asked;
  const loading = new Promise((resolve) => {
    asked = resolve;
  });
  await context.route("**/checkout/*?*", () => asked());
  const opened = page.waitForEvent("popup");
  await button.click();
  const popup = await opened;
  await loading;
  await popup.close();
  await settle(page, 18_000);
  await called(page, "cancel");
  await leave();
});

test("a window closed while choosing cancels, and the order ends", async () => {
  const visitor = await shopper(stage);
  const popup = await openWindow(visitor);
  await close(visitor.page, popup);
  await called(visitor.page, "cancel");
  await stage.service.advance(10);
  await stage.merchant.told(visitor.made[0], "CAN");
  await visitor.leave();
});

test("a window closed while the payer is asked decides nothing until the answer", async () => {
  const visitor = await shopper(stage);
  const { page, leave } = visitor;
  const popup = await openWindow(visitor);
  await checkout.pushTo(popup, "900000001");
  await close(page, popup);
  assert.deepEqual(await calls(page), []);
  await page.getByText("Estamos a confirmar o pagamento").waitFor();
  assert.equal(await page.getByRole("button", { name: "Mostrar a janela" }).count(), 0);
  await stage.service.advance(30);
  await settle(page, 3_000);
  await called(page, "approve");
  await toldClosed(page, "approve");
  assert.equal(await page.getByRole("dialog").count(), 0);
  await leave();
});

test("a window closed with a code that can still be paid is pending, whatever was tried since", async () => {
  const visitor = await shopper(stage);
  const popup = await openWindow(visitor);
  await checkout.chooseCode(popup);
  await popup.getByText("Outro método").click();
  await checkout.on(popup, "choose");
  await checkout.pushTo(popup, "900003000");
  await stage.service.advance(5);
  await checkout.look(popup, "refused");
  await close(visitor.page, popup);
  await called(visitor.page, "pending");
  await visitor.leave();
});

test("the page that waits shows the window again, or cancels", async () => {
  const visitor = await shopper(stage);
  const { page, leave } = visitor;
  const popup = await openWindow(visitor);
  await page.getByRole("dialog", { name: "Continue o pagamento na outra janela" }).waitFor();
  await page.getByRole("button", { name: "Mostrar a janela" }).click();
  assert.deepEqual(await calls(page), []);
  const gone = popup.waitForEvent("close");
  await page.getByRole("button", { name: "Fechar" }).click();
  await gone;
  await called(page, "cancel");
  assert.equal(await page.getByRole("dialog").count(), 0);
  await leave();
});

test("a reload of the window is not a farewell", async () => {
  const visitor = await shopper(stage);
  const popup = await openWindow(visitor);
  await popup.reload();
  await checkout.on(popup, "choose");
  await settle(visitor.page);
  assert.deepEqual(await calls(visitor.page), []);
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await settle(visitor.page, 3_000);
  await called(visitor.page, "approve");
  await visitor.leave();
});

test("a page that its browser kept and shows again is there", async () => {
  const visitor = await shopper(stage);
  const popup = await openWindow(visitor);
  await popup.evaluate(() => {
    for (const event of ["pagehide", "pageshow"]) {
      dispatchEvent(new PageTransitionEvent(event, { persisted: true }));
    }
  });
  await settle(visitor.page);
  await popup.waitForResponse((answer) => answer.url().includes("/status?"));
  await stage.service.advance(30);
  assert.equal(await stage.service.statusOf(visitor.made[0]), "PEN");
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await settle(visitor.page, 3_000);
  await called(visitor.page, "approve");
  await visitor.leave();
});

test("a page cut off from its window hears of the payment from the service", async () => {
  // Its clock is put forward several times within a second, and with it its questions.
  const visitor = await shopper(stage, { path: "/severed", allowed: [/status of 429/] });
  const { page, leave } = visitor;
  const opened = page.context().waitForEvent("page");
  const told = page.waitForEvent("console", (line) => /cut off/.test(line.text()));
  await visitor.button.click();
  const popup = await opened;
  await loaded(popup);
  await settle(page);
  await told;
  assert.deepEqual(await calls(page), [], "a window that only looks closed is not closed");
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await settle(page, 3_000);
  await called(page, "approve");
  assert.deepEqual(await closed(page), []);
  await close(page, popup);
  await toldClosed(page, "approve");
  await leave();
});

test("a page cut off from its window hears that it was closed", async () => {
  const visitor = await shopper(stage, { path: "/severed" });
  const opened = visitor.page.context().waitForEvent("page");
  await visitor.button.click();
  const popup = await opened;
  await loaded(popup);
  await close(visitor.page, popup);
  await called(visitor.page, "cancel");
  await visitor.leave();
});

const blocked = (page) => page.evaluate("window.open = () => null");

test("where windows are blocked the checkout comes as a layer, with the same callbacks", async () => {
  const visitor = await shopper(stage);
  const { page, button, leave } = visitor;
  await blocked(page);
  await button.click();
  const frame = page.frameLocator("iframe");
  await frame.locator('main[data-screen="choose"]').waitFor();
  await settle(page, 1_000);
  await frame.locator('form:has([value="FPSOLPGEXT"]) button').click();
  await frame.locator('main[data-screen="reference"]').waitFor();
  const back = frame.getByText("Voltar à loja").click();
  await called(page, "pending");
  // The layer may be gone before the click in it is reported.
  await back.catch(async (fault) => {
    if ((await page.locator("iframe").count()) > 0) throw fault;
  });
  await toldClosed(page, "pending");
  await leave();
});

test("a web view that has one window only keeps the shop's page, under a layer", async () => {
  const { page, button, leave } = await shopper(stage);
  await page.evaluate("window.open = () => window");
  await button.click();
  await page.frameLocator("iframe").locator('main[data-screen="choose"]').waitFor();
  assert.equal(await page.locator("#pay").count(), 1, "what was there is still there");
  await leave();
});

test("in a browser without sheets of its own the layer covers the page all the same", async () => {
  for (const where of [{}, { path: "/strict" }]) {
    const { page, button, leave } = await shopper(stage, { ...where, allowed: [/style-src/] });
    await page.evaluate("delete window.CSSStyleSheet");
    await blocked(page);
    await button.click();
    await page.frameLocator("iframe").locator('main[data-screen="choose"]').waitFor();
    const { width, height } = await page.locator("iframe").boundingBox();
    const seen = page.viewportSize();
    assert.ok(width > seen.width * 0.3 && height > seen.height * 0.8, `${width} × ${height}`);
    await leave();
  }
});

for (const [way, shut] of [
  ["closed", (page) => page.getByLabel("Fechar").click()],
  ["left by its key", (page) => page.keyboard.press("Escape")],
]) {
  test(`a layer that is ${way} cancels`, async () => {
    const visitor = await shopper(stage);
    const { page, button, leave } = visitor;
    await blocked(page);
    await button.click();
    const frame = page.frameLocator("iframe");
    await frame.locator('main[data-screen="choose"]').waitFor();
    const layer = page.getByRole("dialog", { name: "Pagar" });
    const [bar, below] = await Promise.all(
      [layer.getByLabel("Fechar"), layer.locator("iframe")].map((one) => one.boundingBox()),
    );
    assert.ok(bar.y + bar.height <= below.y, "the way out covers nothing");
    await shut(page);
    await settle(page, 1_000);
    await called(page, "cancel");
    await leave();
  });
}

test("where neither a window nor a frame can be had, the page goes to the checkout", async () => {
  // The order is of another origin than this page: its checkout is not shown in a frame here.
  const origin = stage.merchant.elsewhere;
  const allowed = [/frame-ancestors/, /CORS policy/, /ERR_FAILED/];
  const { page, button, leave } = await shopper(stage, { origin, allowed });
  await blocked(page);
  await button.click();
  await page.locator("iframe").waitFor();
  await settle(page, 9_000);
  await checkout.on(page, "choose");
  await leave();
});

test("a page with the strictest policy needs three sources and nothing inline", async () => {
  const visitor = await shopper(stage, { path: "/strict" });
  const popup = await openWindow(visitor);
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await settle(visitor.page, 3_000);
  await called(visitor.page, "approve");
  await visitor.leave();
});

test("a merchant may have the window closed as soon as the payment is decided", async () => {
  const options = { paymentConfig: { showUIOfProcessingInfo: false } };
  const visitor = await shopper(stage, { options });
  const popup = await openWindow(visitor);
  const gone = popup.waitForEvent("close");
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await settle(visitor.page, 3_000);
  await gone;
  await called(visitor.page, "approve");
  await visitor.leave();
});

test("a network that goes away in the middle delays the news and loses none", async () => {
  const visitor = await shopper(stage, { allowed: [/ERR_INTERNET_DISCONNECTED/] });
  const { page, context, leave } = visitor;
  const popup = await openWindow(visitor);
  await checkout.pushTo(popup, "900000001");
  await context.setOffline(true);
  await stage.service.advance(30);
  await settle(page, 5_000);
  assert.deepEqual(await calls(page), []);
  await context.setOffline(false);
  await settle(page, 4_000);
  await called(page, "approve");
  await leave();
});
