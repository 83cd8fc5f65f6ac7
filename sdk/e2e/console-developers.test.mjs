// The console: keys, first steps, the log of calls, and the two helpers that run in the browser.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { useConsole } from "./support/console.mjs";
import { openWindow, shopper } from "./support/sdk.mjs";

const stage = useConsole();

const CLIPBOARD = { permissions: ["clipboard-read", "clipboard-write"] };
const sign = (secret, body) => createHmac("sha256", secret).update(body).digest("hex");

/** Whether the service gives a token for this secret. */
async function opens(secret) {
  const { clientId, baseUrl } = stage.service;
  const basic = Buffer.from(`${clientId}:${secret}`).toString("base64");
  const answer = await fetch(`${baseUrl}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  return answer.ok;
}

test("the first steps are marked as they are taken", async () => {
  const { page, open, leave } = await stage.partnerUser("developer");
  const marks = async () => {
    await open("/developers");
    return page.locator("ol.steps .pill").allInnerTexts();
  };
  assert.deepEqual(await marks(), ["feito", "por fazer", "por fazer", "por fazer"]);
  await stage.order();
  assert.deepEqual(await marks(), ["feito", "feito", "por fazer", "por fazer"]);
  const payer = await shopper(stage);
  await openWindow(payer);
  const [order] = payer.made;
  assert.deepEqual(await marks(), ["feito", "feito", "feito", "por fazer"]);
  await stage.service.simulate(order, "confirm");
  await stage.merchant.told(order, "CON");
  await open(`/orders/${order.referenceNumber}`);
  await page.locator("ol.story li.delivered").waitFor();
  assert.deepEqual(await marks(), ["feito", "feito", "feito", "feito"]);
  await payer.leave();
  await leave();
});

test("the log shows a program's calls and why one was refused, without its secrets", async () => {
  const { page, open, leave } = await stage.partnerUser("developer");
  const order = await stage.order();
  await assert.rejects(stage.service.createOrder({ merchant: stage.merchant, amount: -5 }), /422/);
  // The log is written beside the calls.
  const row = page.locator("tbody tr", { hasText: "createPaymentOrder" });
  await until(async () => {
    await open("/requests?show=refused");
    return (await row.count()) > 0;
  });
  await row.first().getByText("422", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Todas" }).click();
  await row.getByText(order.externalTransactionId).first().waitFor();
  assert.ok(!(await page.content()).includes(stage.service.clientSecret));
  const id = await row.first().getByRole("link").innerText();
  await page.getByRole("searchbox").fill(id);
  await page.getByRole("searchbox").press("Enter");
  await page.waitForURL(new RegExp(`/requests/${id}$`));
  assert.equal(await page.locator("tbody tr").count(), 1);
  await leave();
});

/** Looks again and again until it is so. */
async function until(isSo) {
  const deadline = AbortSignal.timeout(15_000);
  while (!(await isSo())) deadline.throwIfAborted();
}

test("a signature is checked in the browser, and the usual mistakes are named", async () => {
  const { page, open, press, leave } = await stage.partnerUser("developer");
  await open("/developers");
  const sent = [];
  // Browsers ask for the icon whenever they like.
  const isIcon = (url) => url.endsWith("/console.svg");
  page.on("request", (request) => isIcon(request.url()) || sent.push(request.url()));
  const secret = "whsec_exemplo";
  const body = '{"event": "payment", "n": 1}';
  const form = page.locator("#signature-helper");
  const verdict = async (given, typed = secret) => {
    await form.locator("[name=body]").fill(body);
    await form.locator("[name=secret]").fill(typed);
    await form.locator("[name=given]").fill(given);
    await press("Verificar");
    await form.locator("output code").getByText(sign(typed, body)).waitFor();
    return (await form.locator("output").innerText()).split("\n")[0];
  };
  const right = sign(secret, body);
  assert.equal(await verdict(right), "Está certa.");
  assert.match(await verdict(right.toUpperCase()), /maiúsculas/);
  assert.match(await verdict(sign(secret, `${body}\n`)), /quebra de linha/);
  assert.match(await verdict(sign(secret, '{"event":"payment","n":1}')), /JSON escrito de novo/);
  assert.match(await verdict(sign("outro", body)), /^Não corresponde a esta mensagem/);
  assert.match(await verdict(right, "svcsec_exemplo"), /segredo do cliente/);
  assert.match(await verdict(right, "exemplo"), /começa por whsec_/);
  assert.deepEqual(sent, [], "nothing left the browser");
  await leave();
});

test("the button's code follows the choices, and is copied", async () => {
  const { page, open, leave } = await stage.partnerUser("developer", CLIPBOARD);
  await open("/developers");
  const code = page.locator("#button-code");
  const { publishableKey, baseUrl } = stage.service;
  for (const part of [
    `Svc("${publishableKey}")`,
    `src="${baseUrl}/sdks/v1/svc.min.js"`,
    'shape: "pill"',
    'allowedPaymentMethods: ["FPMCXEXPRSS", "FPSOLPGEXT", "FPSOLPG"]',
    "referencePaymentLifeSpan: 1440",
  ]) {
    await code.getByText(part).waitFor();
  }
  const form = page.locator("#button-builder");
  await form.getByLabel("Forma").selectOption("sharp");
  await form.getByLabel("Tema").selectOption("dark");
  await form.getByLabel("Idioma").selectOption("fr");
  await form.getByLabel("Largura").fill('240px"');
  await form.getByLabel("Validade da referência (minutos)").fill("90");
  await form.getByLabel("FPMCXEXPRSS").uncheck();
  const text = await code.textContent();
  for (const part of [
    'shape: "sharp"',
    'theme: "dark"',
    'lang: "fr"',
    'width: "240px\\""',
    "referencePaymentLifeSpan: 90",
    'allowedPaymentMethods: ["FPSOLPGEXT", "FPSOLPG"]',
  ]) {
    assert.ok(text.includes(part), part);
  }
  const script = text.match(/<script>([\s\S]*)<\/script>/)[1];
  assert.doesNotThrow(() => new Function(script), "it is a program");
  await page.locator("#button-code + button").click();
  await page.getByRole("button", { name: "Copiado" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), text);
  await leave();
});

test("a client secret is rotated, shown once, and the one before revoked", async () => {
  const { page, open, press, told, agree, leave } = await stage.partnerUser("developer");
  const old = stage.service.clientSecret;
  await open("/developers");
  agree("Emitir um segredo novo?");
  await press("Trocar o SVC_CLIENT_SECRET");
  const [name, secret] = (await page.locator("#revealed").innerText()).split("=");
  assert.equal(name, "SVC_CLIENT_SECRET");
  assert.deepEqual([await opens(secret), await opens(old)], [true, true], "both for a day");
  await open("/developers");
  assert.ok(!(await page.content()).includes(secret), "it is shown once");
  await page.getByText("O anterior vale até").first().waitFor();
  await press("Revogar o anterior agora");
  await told("O segredo anterior já não vale.");
  assert.deepEqual([await opens(secret), await opens(old)], [true, false]);
  await leave();
});

test("a webhook secret is rotated and shown once", async () => {
  const { page, open, press, agree, leave } = await stage.operator();
  await open("/developers");
  agree("Emitir um segredo novo?");
  await press("Trocar o segredo dos webhooks");
  const [name, secret] = (await page.locator("#revealed").innerText()).split("=");
  assert.equal(name, "SVC_WEBHOOK_SECRET");
  assert.notEqual(secret, stage.service.webhookSecret);
  await open("/developers");
  assert.ok(!(await page.content()).includes(secret));
  await leave();
});

test("support sees the keys' names and no way to change them", async () => {
  const { page, open, leave } = await stage.partnerUser("support");
  await open("/developers");
  await page.getByText(stage.service.clientId).waitFor();
  assert.equal(await page.locator("form[action*=rotate]").count(), 0);
  await leave();
});
