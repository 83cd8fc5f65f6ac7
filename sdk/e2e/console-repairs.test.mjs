// The console: webhooks that were not taken and money that does not fit, found and mended.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { useConsole } from "./support/console.mjs";

const stage = useConsole();

const sign = (secret, body) => createHmac("sha256", secret).update(body).digest("hex");

/** An order that was paid while the shop answered 500. */
async function untold() {
  stage.merchant.breaks("<b>out of order</b>");
  const order = await stage.order();
  await stage.service.simulate(order, "confirm");
  return order;
}

test("a refused delivery shows what was sent and answered, and is sent again", async () => {
  const { page, open, press, told, leave } = await stage.operator({
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const order = await untold();
  await open("/webhooks?state=failing");
  const row = page.locator("tr", { hasText: order.referenceNumber });
  await row.locator(".pill", { hasText: "A falhar" }).waitFor();
  await row.getByRole("link").first().click();
  await page.waitForURL(/webhooks\/evt/);
  const answer = page.locator("tbody tr", { hasText: "HTTP 500" }).first();
  assert.match(await answer.innerText(), /<b>out of order<\/b>/, "as text, not as markup");

  const body = await page.locator("h3:text-is('Corpo') + pre").innerText();
  assert.equal(JSON.parse(body).data.externalTransactionId, order.externalTransactionId);
  const header = page.locator("tr", { hasText: "x-svc-content-token" }).locator("td");
  assert.equal(await header.innerText(), sign(stage.service.webhookSecret, body));
  await press("Copiar como curl");
  await page.getByRole("button", { name: "Copiado" }).waitFor();
  const curl = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(curl.startsWith(`curl -sS -X POST '${stage.merchant.origin}/webhook'`), curl);
  assert.ok(curl.includes(`-H 'x-svc-content-token: ${await header.innerText()}'`), curl);
  assert.ok(curl.endsWith(`--data-binary '${body}'`), curl);

  stage.merchant.breaks("");
  await press("Enviar de novo");
  await told("Na fila outra vez; sai já.");
  await page.locator("h1 .pill", { hasText: "Entregue" }).waitFor();
  await stage.merchant.told(order, "CON");
  await leave();
});

test("all that failed is recovered in one go", async () => {
  const orders = [await untold(), await untold()];
  const { page, open, press, told, leave } = await stage.operator();
  await open("/webhooks");
  const place = page.locator("section", { hasText: "Destinos" }).locator("tbody tr");
  for (const { referenceNumber } of orders) {
    const row = page.locator("#live tr", { hasText: referenceNumber });
    await row.locator(".pill", { hasText: "A falhar" }).waitFor();
  }
  await open("/webhooks");
  await place.getByText("a falhar").waitFor();
  stage.merchant.breaks("");
  await page.getByLabel("Das últimas horas (quantas)").fill("1");
  await press("Enviar de novo tudo o que falhou");
  await told("Tudo o que falhou sai de novo.");
  for (const order of orders) {
    await stage.merchant.told(order, "CON");
    const row = page.locator("#live tr", { hasText: order.referenceNumber });
    await row.locator(".pill", { hasText: "Entregue" }).waitFor();
  }
  await open("/webhooks");
  await place.getByText("saudável").waitFor();
  await leave();
});

test("webhooks are filtered by their state", async () => {
  const order = await stage.order();
  await stage.service.simulate(order, "confirm");
  await stage.merchant.told(order, "CON");
  const { page, open, leave } = await stage.operator();
  await open("/webhooks");
  await page.getByLabel("Estado").selectOption("delivered");
  await page.waitForURL(/state=delivered/);
  const pills = page.locator("#live .pill");
  await pills.first().waitFor();
  assert.deepEqual([...new Set(await pills.allInnerTexts())], ["Entregue"]);
  await page.getByLabel("Estado").selectOption("exhausted");
  await page.waitForURL(/state=exhausted/);
  await page.locator("#live", { hasText: "Nada aqui." }).waitFor();
  await leave();
});

test("a partner's developer sends again what is theirs; a reader does not", async () => {
  const order = await untold();
  const developer = await stage.partnerUser("developer");
  await developer.open("/webhooks");
  const row = developer.page.locator("#live tr", { hasText: order.referenceNumber });
  await row.locator(".pill", { hasText: "A falhar" }).waitFor();
  await row.getByRole("link").first().click();
  await developer.page.waitForURL(/webhooks\/evt/);
  const address = developer.page.url();
  stage.merchant.breaks("");
  await developer.press("Enviar de novo");
  await developer.told("Na fila outra vez; sai já.");
  await stage.merchant.told(order, "CON");
  await developer.leave();
  const reader = await stage.partnerUser("reader");
  await reader.page.goto(address);
  await reader.page.locator("h1 .pill", { hasText: "Entregue" }).waitFor();
  assert.equal(await reader.page.locator("main form").count(), 0);
  await reader.leave();
});

/** Paid at the bank with another amount, by the sandbox's magic values. */
async function mismatch(amount) {
  const order = await stage.order({ amount });
  await stage.service.simulate(order, "pending");
  await stage.service.advance(10);
  return order;
}

const cardOf = (page, { referenceNumber }) =>
  page.locator("section.card", { hasText: referenceNumber });

test("money of another amount is accepted, with a reason, and the order is paid", async () => {
  const order = await mismatch(9004);
  const { page, open, told, agree, leave } = await stage.operator();
  await open("/exceptions");
  const card = cardOf(page, order);
  await card.getByText("Outro montante", { exact: true }).waitFor();
  await card.getByText("9.005,00\u00a0Kz").first().waitFor();
  await card.getByLabel("Resolver").selectOption("accept");
  await card.getByRole("button", { name: "Resolver" }).click();
  const asked = await card.getByLabel("Motivo").evaluate((field) => field.validity.valueMissing);
  assert.ok(asked, "without a reason nothing is sent");
  await card.getByLabel("Motivo").fill("um kwanza a mais, combinado");
  agree("Esta decisão é definitiva e pode mudar a encomenda. Continuar?");
  await card.getByRole("button", { name: "Resolver" }).click();
  await told("Resolvido.");
  assert.equal(await cardOf(page, order).count(), 0);
  assert.equal(await stage.service.statusOf(order), "CON");
  await page.getByRole("link", { name: "Todas" }).click();
  await cardOf(page, order).getByText("um kwanza a mais, combinado").waitFor();
  await leave();
});

test("money of another amount is given back, and a partner sees that it was", async () => {
  const order = await mismatch(9003);
  const partner = await stage.partnerUser("owner");
  await partner.open("/exceptions");
  await cardOf(partner.page, order).getByText("Outro montante", { exact: true }).waitFor();
  assert.equal(await partner.page.locator("main form").count(), 0, "an operator decides");
  const { page, open, told, agree, leave } = await stage.operator();
  await open("/exceptions");
  const card = cardOf(page, order);
  await card.getByLabel("Resolver").selectOption("refund");
  await card.getByLabel("Motivo").fill("devolvido por transferência");
  agree("Esta decisão é definitiva e pode mudar a encomenda. Continuar?");
  await card.getByRole("button", { name: "Resolver" }).click();
  await told("Resolvido.");
  await leave();
  await partner.open("/exceptions?show=all");
  const story = await cardOf(partner.page, order).innerText();
  assert.match(story, /devolvido por transferência · operador/, "not who of the operators it was");
  await partner.leave();
});
