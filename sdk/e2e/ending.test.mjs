// Orders that end without money, and orders where money was quicker.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PHONE } from "./support/browser.mjs";
import * as checkout from "./support/checkout.mjs";
import { looksRight } from "./support/looks.mjs";
import { useStage } from "./support/stage.mjs";
import { SENTENCES } from "./support/texts.mjs";

const stage = useStage();

// What a browser writes about the answer to a session that ran out.
const SESSION_OVER = /status of 401/;

test("a payer who cancels needs two taps and ends at the shop's page for it", async () => {
  const { order, page, leave } = await stage.visit();
  assert.ok(!(await page.locator(".cancel button").isVisible()), "one stray tap is not enough");
  await checkout.cancel(page);
  await checkout.on(page, "cancelled");
  await stage.merchant.told(order, "CAN");
  await page.getByText("Voltar à loja").click();
  await page.waitForURL(`${stage.merchant.origin}/cancelled?*`);
  assert.equal(new URL(page.url()).searchParams.get("status"), "CAN");
  await leave();
});

test("who cancels while a push waits is told so, and the payment wins", async () => {
  const { order, page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000001");
  await checkout.on(page, "waiting");
  await checkout.cancel(page);
  await page.getByRole("heading", { name: SENTENCES.cancelling.pt }).waitFor();
  await checkout.on(page, "waiting");
  assert.equal(await stage.service.statusOf(order), "PEN");
  await stage.service.advance(30);
  await checkout.look(page, "paid");
  await stage.merchant.told(order, "CON");
  await leave();
});

test("who cancels while a push waits is cancelled once nobody answered it", async () => {
  const { order, page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000003");
  await checkout.on(page, "waiting");
  await checkout.cancel(page);
  await page.getByRole("heading", { name: SENTENCES.cancelling.pt }).waitFor();
  await stage.service.advance(90);
  await checkout.look(page, "cancelled");
  await stage.merchant.told(order, "CAN");
  await leave();
});

test("a reference that ran out is shown no more, and the order ends", async () => {
  const query = { life: "10" };
  const { order, page, leave } = await stage.visit({ query });
  await checkout.chooseReference(page);
  const [, reference] = await checkout.slip(page);
  await stage.service.advance(600);
  await checkout.look(page, "expired");
  assert.ok(!(await page.locator("body").innerText()).includes(reference));
  await stage.service.advance(10);
  await stage.merchant.told(order, "CAN");
  await page.reload();
  await checkout.on(page, "expired");
  await leave();
});

test("an order nobody chose a method for ends a day later, in the open page too", async () => {
  const { order, page, leave } = await stage.visit({ allowed: [SESSION_OVER] });
  await stage.service.advance(86_400);
  await checkout.look(page, "expired");
  await stage.merchant.told(order, "CAN");
  await page.getByText("Voltar à loja").click();
  await page.waitForURL(`${stage.merchant.origin}/cancelled?*`);
  await leave();
});

const hasFocus = (target) => target.evaluate((one) => one === document.activeElement);

test("a page left open for longer than its session renews it under the payer's hands", async () => {
  const { page, leave } = await stage.visit({ allowed: [SESSION_OVER] });
  await checkout.choosePhone(page);
  await page.locator(".cancel summary").click();
  const field = page.locator("#phone");
  await field.fill("92345");
  await field.evaluate((one) => one.setSelectionRange(1, 3));
  const session = await page.locator("main").getAttribute("data-session");
  await stage.service.advance(1_000);
  await page.clock.fastForward(2_000);
  await page.locator(`main:not([data-session="${session}"])`).waitFor();
  assert.equal(await field.inputValue(), "92345");
  assert.deepEqual(await field.evaluate((one) => [one.selectionStart, one.selectionEnd]), [1, 3]);
  assert.ok(await hasFocus(field), "the keyboard stays");
  assert.ok(await page.locator(".cancel button").isVisible(), "what was open stays open");
  await checkout.payByPhone(page, "900000001");
  await checkout.on(page, "waiting");
  await leave();
});

test("a payer who pays with a session that has run out presses once more", async () => {
  const { context, page, leave } = await stage.visit({ allowed: [SESSION_OVER] });
  await checkout.withholdNews(context);
  await checkout.choosePhone(page);
  await stage.service.advance(1_000);
  await checkout.payByPhone(page, "900000001");
  await page.locator('main:not([aria-busy="true"]) form button.first').waitFor();
  assert.equal(await page.locator("#phone").inputValue(), "900000001");
  await checkout.press(page, page.locator("form button.first"));
  await checkout.on(page, "waiting");
  await leave();
});

test("a code nobody used is told, and another is one press away", async () => {
  const { page, leave } = await stage.visit({ allowed: [SESSION_OVER] });
  await checkout.chooseCode(page);
  await stage.service.advance(900);
  await checkout.look(page, "refused");
  await page.getByRole("heading", { name: "O código expirou" }).waitFor();
  await page.setViewportSize(PHONE);
  await looksRight(page, "code-expired-pt-phone");
  await page.getByRole("link", { name: "Outro método" }).click();
  await checkout.on(page, "choose");
  await page.goBack();
  await checkout.on(page, "refused");
  await checkout.press(page, page.getByRole("button", { name: "Tentar de novo" }));
  await checkout.on(page, "code");
  assert.equal(await checkout.attempts(page), 2);
  await leave();
});

test("a rail that is down says so and leaves the other methods", async () => {
  const { page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000009");
  await checkout.on(page, "down");
  await page.getByText("Outro método").click();
  await checkout.on(page, "choose");
  await checkout.chooseCode(page);
  await leave();
});

test("a reference that cannot be issued says so", async () => {
  const { page, leave } = await stage.visit({ order: { amount: 9_009 } });
  await checkout.press(page, checkout.method(page, "FPSOLPGEXT"));
  await checkout.on(page, "down");
  await leave();
});

test("money of another amount is looked into by a person, and nothing turns meanwhile", async () => {
  const { page, leave } = await stage.visit({ order: { amount: 9_004 } });
  await checkout.chooseReference(page);
  await stage.service.advance(10);
  await checkout.look(page, "confirming");
  await page.getByRole("heading", { name: "Pagamento em verificação" }).waitFor();
  await page.locator("main").getByText("Não pague outra vez").waitFor();
  assert.equal(await page.locator(".mark.busy").count(), 0);
  await page.setViewportSize(PHONE);
  await looksRight(page, "held-pt-phone");
  await leave();
});

test("a tap on a slow network is seen at once, and told after a while", async () => {
  const { order, page, context, leave } = await stage.visit();
  await checkout.choosePhone(page);
  let answer = () => {};
  const answered = new Promise((resolve) => {
    answer = resolve;
  });
  await context.route("**/pay?*", async (route) => {
    await answered;
    await route.continue();
  });
  await checkout.payByPhone(page, "900000001");
  await page.locator('main[aria-busy="true"]').waitFor();
  const other = page.getByRole("link", { name: "Outro método" });
  // For a finger; the driver waits until it is no longer called disabled.
  await other.dispatchEvent("click");
  await page.clock.fastForward(2_000);
  await page.getByText(SENTENCES.slow.pt).waitFor();
  assert.equal(new URL(page.url()).searchParams.get("view"), "phone", "the link waits too");
  assert.ok(await hasFocus(page.locator("form button.first")));
  await page.setViewportSize(PHONE);
  await looksRight(page, "slow-pt-phone");
  answer();
  await checkout.on(page, "waiting");
  assert.ok(!(await page.locator("#problem").isVisible()), "it is there");
  await stage.service.advance(30);
  await checkout.look(page, "paid");
  await stage.merchant.told(order, "CON");
  await leave();
});

test("a step that a later one overtook says nothing any more", async () => {
  const { page, context, leave } = await stage.visit();
  await checkout.pushTo(page, "900002001");
  await stage.service.advance(5);
  await checkout.look(page, "refused");
  // Never answered.
  await context.route("**/checkout/*view=phone*", () => {});
  await page.getByRole("link", { name: "Tentar de novo" }).click();
  await page.getByRole("link", { name: "Outro método" }).click();
  await checkout.on(page, "choose");
  await page.clock.fastForward(2_000);
  assert.ok(!(await page.locator("#problem").isVisible()));
  await leave();
});

test("what could not be sent is asked for again by the payer, and paid once", async () => {
  const { order, page, context, leave } = await stage.visit({
    allowed: [/ERR_INTERNET_DISCONNECTED/],
  });
  await checkout.choosePhone(page);
  await context.setOffline(true);
  await checkout.payByPhone(page, "900000001");
  await page.getByText(SENTENCES.unsent.pt).waitFor();
  // The page goes on looking, and says nothing else meanwhile.
  await page.waitForEvent("requestfailed");
  await page.waitForEvent("requestfailed");
  assert.ok(await page.getByText(SENTENCES.unsent.pt).isVisible());
  assert.ok(await hasFocus(page.locator("form button.first")), "one key sends it again");
  await checkout.on(page, "phone");
  await context.setOffline(false);
  const heard = page.waitForResponse(/\/status/);
  await page.clock.fastForward(5_000);
  await heard;
  await page.getByText(SENTENCES.backOnline.pt).waitFor();
  assert.ok(await page.locator("#problem").isVisible(), "until it is sent");
  await checkout.payByPhone(page, "900000001");
  await checkout.on(page, "waiting");
  await stage.service.advance(30);
  await checkout.on(page, "paid");
  await stage.merchant.told(order, "CON");
  await leave();
});

test("a page that lost the network catches up when it is back", async () => {
  const { page, context, leave } = await stage.visit({ allowed: [/ERR_INTERNET_DISCONNECTED/] });
  await checkout.pushTo(page, "900000001");
  await checkout.on(page, "waiting");
  await context.setOffline(true);
  await page.getByText(SENTENCES.offline.pt).waitFor();
  await stage.service.advance(30);
  await context.setOffline(false);
  await checkout.on(page, "paid");
  assert.ok(!(await page.locator("#problem").isVisible()));
  await leave();
});

test("a push whose time is up while nobody answers no longer asks for a payment", async () => {
  const { page, context, leave } = await stage.visit({ allowed: [/ERR_INTERNET_DISCONNECTED/] });
  await checkout.pushTo(page, "900000003");
  await checkout.on(page, "waiting");
  await context.setOffline(true);
  await page.clock.fastForward(91_000);
  await page.getByRole("heading", { name: SENTENCES.waitEnded.pt }).waitFor();
  assert.ok(!(await page.locator(".steps, .lead").first().isVisible()));
  await looksRight(page, "waiting-ended-pt-phone");
  await context.setOffline(false);
  await page.getByText("Abra a app e autorize o pagamento").waitFor();
  await stage.service.advance(90);
  await checkout.look(page, "refused");
  await leave();
});

test("what was said to a screen reader is gone when it reads on", async () => {
  const { page, leave } = await stage.visit();
  await checkout.pushTo(page, "900002001");
  await stage.service.advance(5);
  await checkout.look(page, "refused");
  const said = page.locator("#say");
  assert.match(await said.textContent(), /Saldo insuficiente/);
  await page.clock.fastForward(5_000);
  assert.equal(await said.textContent(), "");
  await leave();
});
