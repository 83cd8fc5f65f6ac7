// The ways from an order to its money, as payers walk them.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import { useStage } from "./support/stage.mjs";
import { SENTENCES } from "./support/texts.mjs";

const stage = useStage();

test("a push that is approved pays the order and tells the shop", async () => {
  const { order, page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000000");
  await page.locator("main").getByText("9•• ••• 000").waitFor();
  await stage.service.advance(3);
  await checkout.look(page, "paid");
  await stage.merchant.told(order, "CON");
  await page.getByText("Voltar à loja").click();
  await page.waitForURL(`${stage.merchant.origin}/ok?*`);
  const query = new URL(page.url()).searchParams;
  assert.equal(query.get("orderId"), order.externalTransactionId);
  assert.equal(query.get("status"), "CON");
  await leave();
});

test("a refused payer tries again with another number", async () => {
  const { order, page, leave } = await stage.visit();
  await checkout.pushTo(page, "900003000");
  await stage.service.advance(5);
  await checkout.look(page, "refused");
  await page.locator("main").getByText("O pedido foi recusado na app").waitFor();
  assert.equal(await stage.service.statusOf(order), "PEN");
  await page.getByText("Tentar de novo").click();
  await checkout.on(page, "phone");
  assert.equal(await page.locator("#phone").inputValue(), "900003000", "not to be typed again");
  await checkout.payByPhone(page, "923 456 678");
  await checkout.on(page, "waiting");
  assert.equal(await checkout.attempts(page), 2);
  await stage.service.advance(4);
  await checkout.look(page, "paid");
  await stage.merchant.told(order, "CON");
  await leave();
});

test("a payer who is refused changes to another method", async () => {
  const { page, leave } = await stage.visit();
  await checkout.pushTo(page, "900002002");
  await stage.service.advance(5);
  await checkout.look(page, "refused");
  await page.getByText("Outro método").click();
  await checkout.on(page, "choose");
  await checkout.chooseReference(page);
  await leave();
});

// No moved timers here: the page has to find out in its own time.
test("a reference paid at the cash machine turns the open page to paid by itself", async () => {
  const { order, page, context, leave } = await stage.visit({ ownClock: false });
  // Its script has run when the page is loaded; a click counts half a second later.
  await page.waitForFunction(() => {
    const [{ loadEventEnd }] = performance.getEntriesByType("navigation");
    return loadEventEnd > 0 && performance.now() > loadEventEnd + 500;
  });
  await page.locator('form:has([value="FPSOLPGEXT"]) button').click();
  await checkout.on(page, "reference");
  const [entity, reference, amount] = await checkout.slip(page);
  assert.equal(entity, "00000");
  assert.match(reference, /^[1-9]\d\d \d{3} \d{3}$/);
  assert.equal(amount, "15.000,00\u00a0Kz");

  const machine = await context.newPage();
  await machine.goto(`${stage.service.baseUrl}/sandbox/atm?lang=pt`);
  const pay = async (typed) => {
    await machine.getByLabel("Entidade").fill(entity);
    await machine.getByLabel("Referência").fill(reference);
    await machine.getByLabel("Montante").fill(typed);
    await machine.getByRole("button", { name: "Pagar" }).click();
    return machine.getByRole("status").textContent();
  };
  assert.equal(await pay("14999"), "Montante incorrecto");
  assert.equal(await pay("15000"), "Pago");
  await checkout.on(page, "paid");
  assert.equal(await pay("15000"), "Referência já paga");
  await stage.merchant.told(order, "CON");
  await leave();
});

test("back at the shop with a reference, the shop knows which", async () => {
  const { page, leave } = await stage.visit();
  await checkout.chooseReference(page);
  const [entity, reference] = await checkout.slip(page);
  await page.getByText("Voltar à loja").click();
  await page.waitForURL(`${stage.merchant.origin}/ok?*`);
  const query = new URL(page.url()).searchParams;
  assert.equal(query.get("entity"), entity);
  assert.equal(query.get("ref"), reference.replaceAll(" ", ""));
  assert.equal(query.get("status"), "PEN");
  await leave();
});

test("a copied reference is its digits, without spaces", async () => {
  const permissions = ["clipboard-read", "clipboard-write"];
  const { page, leave } = await stage.visit({ permissions });
  await checkout.chooseReference(page);
  const [, reference] = await checkout.slip(page);
  const button = page.locator(".slip button").nth(1);
  await button.click();
  await page.getByText("Copiado").first().waitFor();
  assert.ok(!(await button.locator("svg").isVisible()), "a tick takes the place of the sheets");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, reference.replaceAll(" ", ""));
  await leave();
});

for (const [decision, press, said, screen] of [
  ["approved", "Autorizar", "Pago", "paid"],
  ["refused", "Recusar", "Recusado", "refused"],
]) {
  test(`a payment ${decision} in the wallet shows as ${screen}`, async () => {
    const { page, leave } = await stage.visit();
    await checkout.chooseCode(page);
    const opened = page.waitForEvent("popup");
    await page.getByText("Abrir a app").click();
    const wallet = await opened;
    await wallet.getByRole("button", { name: press }).click();
    await wallet.getByText(said, { exact: true }).waitFor();
    await checkout.look(page, screen);
    await leave();
  });
}

test("a code typed into the wallet finds its payment", async () => {
  const { page, context, leave } = await stage.visit();
  await checkout.chooseCode(page);
  const wallet = await context.newPage();
  await wallet.goto(`${stage.service.baseUrl}/sandbox/wallet`);
  await wallet.getByLabel("Código").fill(await page.locator(".figure").textContent());
  await wallet.getByRole("button", { name: "Abrir" }).click();
  await wallet.getByRole("button", { name: "Autorizar" }).click();
  await checkout.look(page, "paid");
  await leave();
});

test("a push nobody hears of is being confirmed, and is paid when its news come", async () => {
  const { order, page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000004");
  await checkout.on(page, "waiting");
  await stage.service.advance(90);
  await checkout.look(page, "confirming");
  await page.locator("main").getByText(SENTENCES.confirming.pt).waitFor();
  assert.equal(await page.locator("form button").count(), 0, "nothing invites to pay again");
  const back = page.getByRole("link", { name: "Voltar à loja" });
  assert.match(await back.getAttribute("href"), /status=PEN/, "nobody has to wait here");
  await stage.service.advance(90);
  await checkout.look(page, "paid");
  await stage.merchant.told(order, "CON");
  await leave();
});

test("a push nobody answers ends after its ninety seconds and can be tried again", async () => {
  const { page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000003");
  await checkout.on(page, "waiting");
  await stage.service.advance(90);
  await checkout.look(page, "refused");
  await page
    .locator("main")
    .getByText("O prazo para autorizar terminou. Se ainda quer pagar, tente de novo")
    .waitFor();
  await leave();
});
