// The console: coming in and going out, one's own account, other people, and who did what.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choosePassword, create, PASSWORD, signIn, totp, useConsole } from "./support/console.mjs";

const stage = useConsole();

const REFUSED = /status of 4(01|03|04|22)/;

test("an operator comes in by the link of `svc operator create`, once", async () => {
  const { url } = await create(stage, "ana");
  const { page, heading, leave } = await stage.stranger({ allowed: [REFUSED] });
  await page.goto(url);
  assert.equal(await heading(), "Bem-vindo, ana");
  await choosePassword(page, PASSWORD, "outra coisa qualquer");
  await page.getByRole("alert").getByText("As duas não são iguais.").waitFor();
  await choosePassword(page, PASSWORD);
  await page.waitForURL(/\/console$/);
  await page.locator(".who", { hasText: "ana · proprietário" }).waitFor();
  await page.goto(url);
  assert.equal(await heading(), "Não encontrado", "the link is used up");
  await leave();
});

test("one signs in to where one wanted to go, and out again", async () => {
  const { url } = await create(stage, "rui", "--role", "support");
  const { page, open, heading, press, leave } = await stage.stranger({ allowed: [REFUSED] });
  await page.goto(url);
  await choosePassword(page, PASSWORD);
  await page.waitForURL(/\/console$/);
  await press("Sair");
  await page.waitForURL(/sign-in$/);
  await open("/webhooks?state=queued");
  await page.waitForURL(/sign-in\?next=/);
  await signIn(page, "rui", "não é esta palavra");
  await page
    .getByRole("alert")
    .getByText(/^Utilizador, palavra-passe ou código errados/)
    .waitFor();
  assert.equal(await page.getByLabel("Utilizador").inputValue(), "rui");
  await signIn(page, "rui", PASSWORD);
  await page.waitForURL(/\/console\/webhooks\?state=queued$/);
  await open("/people");
  assert.equal(await heading(), "Sem permissão");
  await leave();
});

test("a page that is open when its session ends leads to the door", async () => {
  const { page, context, open, leave } = await stage.operator({ allowed: [REFUSED, /401/] });
  await open("/orders");
  await context.clearCookies();
  await stage.order();
  await page.waitForURL(/sign-in/);
  await leave();
});

test("the language is chosen on any page, and stays", async () => {
  const { page, open, heading, leave } = await stage.stranger();
  await open("/sign-in");
  await page.getByRole("link", { name: "Français" }).click();
  await page.getByRole("button", { name: "Se connecter" }).waitFor();
  await page.goto(stage.service.consoleUrl);
  assert.equal(await heading(), "Accueil");
  await open("/orders?status=CON");
  await page.getByRole("link", { name: "English" }).click();
  await page.waitForURL(/\/orders\?status=CON$/);
  assert.equal(await heading(), "Orders");
  assert.equal(await page.locator("html").getAttribute("lang"), "en");
  await leave();
});

test("an owner invites somebody, changes their role, and lets them in no more", async () => {
  const owner = await stage.partnerUser("owner");
  await owner.page.getByRole("link", { name: "Utilizadores" }).click();
  await owner.page.getByLabel("Utilizador").fill("nova@loja.ao");
  await owner.page.locator("form[action$=people] select").selectOption("developer");
  await owner.press("Convidar");
  const link = await owner.page.locator("#invited").innerText();
  const row = owner.page.locator("tr", { hasText: "nova@loja.ao" });
  await row.getByText("convidado").waitFor();
  await owner.open("/people");
  assert.equal(await owner.page.locator("#invited").count(), 0, "the link is shown once");

  const guest = await stage.stranger({ allowed: [REFUSED] });
  await guest.page.goto(link);
  await choosePassword(guest.page, PASSWORD);
  await guest.page
    .locator(".who", { hasText: "nova@loja.ao · programador · Loja Kianda" })
    .waitFor();

  await owner.page.getByLabel("Papel: nova@loja.ao").selectOption("reader");
  await row.getByRole("button", { name: "Guardar" }).click();
  await owner.told("Mudado.");
  await row.locator("[data-label=Papel]").getByText("leitura").waitFor();
  owner.agree("Desactivar este utilizador? As suas sessões terminam já.");
  await row.getByRole("button", { name: "Desactivar" }).click();
  await row.getByText("desactivado").waitFor();
  await guest.open("/orders");
  await guest.page.waitForURL(/sign-in/);
  await signIn(guest.page, "nova@loja.ao", PASSWORD);
  await guest.page.getByRole("alert").waitFor();
  await row.getByRole("button", { name: "Activar", exact: true }).click();
  await row.getByText("activo", { exact: true }).waitFor();
  await signIn(guest.page, "nova@loja.ao", PASSWORD);
  await guest.page.locator(".who", { hasText: "leitura" }).waitFor();
  const own = owner.page.locator("tr", { hasText: "owner@loja.ao" });
  assert.equal(await own.locator("form").count(), 0, "nobody locks themselves out");
  await guest.leave();
  await owner.leave();
});

test("codes from a phone are switched on, asked for, and switched off", async () => {
  const { url } = await create(stage, "bea");
  const { page, open, press, told, leave } = await stage.stranger({ allowed: [REFUSED] });
  await page.goto(url);
  await choosePassword(page, PASSWORD);
  await page.waitForURL(/\/console$/);
  await open("/account");
  await page.locator(".qr svg").waitFor();
  const present = page.locator("form[action$=totp] input[name=present]");
  await page.getByLabel("Código", { exact: true }).fill("000000");
  await present.fill(PASSWORD);
  await press("Ligar códigos");
  await page
    .getByRole("alert")
    .getByText(/^O código não está certo/)
    .waitFor();
  const seed = await page.locator("form[action$=totp] code").innerText();
  await page.getByLabel("Código", { exact: true }).fill(totp(seed));
  await present.fill(PASSWORD);
  await press("Ligar códigos");
  await told("Mudado.");
  await page.getByText("Os códigos estão ligados.").waitFor();
  await press("Sair");
  await signIn(page, "bea", PASSWORD);
  await page.getByRole("alert").waitFor();
  // The code that switched it on is used up; a phone that is a little ahead shows the next one.
  await signIn(page, "bea", PASSWORD, totp(seed, 1));
  await page.waitForURL(/\/console$/);
  await open("/account");
  await press("Desligar códigos");
  await page.getByRole("alert").waitFor();
  await present.fill(PASSWORD);
  await press("Desligar códigos");
  await told("Mudado.");
  await page.locator(".qr svg").waitFor();
  await leave();
});

test("a password is changed by who knows the present one", async () => {
  const { page, open, press, told, leave } = await stage.partnerUser("developer", {
    allowed: [REFUSED],
  });
  const change = async (present, next) => {
    await page.locator("form[action$=password] input[name=present]").fill(present);
    await page.getByLabel(/^Nova palavra-passe/).fill(next);
    await page.getByLabel("Repita a palavra-passe").fill(next);
    await press("Guardar");
  };
  await open("/account");
  await change("não é esta palavra", "outra palavra-passe");
  await page.getByRole("alert").waitFor();
  await change(PASSWORD, "outra palavra-passe");
  await told("Mudado.");
  await press("Sair");
  await signIn(page, "developer@loja.ao", "outra palavra-passe");
  await page.waitForURL(/\/console$/);
  await leave();
});

test("operators read who did what; others do not", async () => {
  const order = await stage.order();
  const { page, open, press, leave } = await stage.operator();
  await open(`/orders/${order.referenceNumber}`);
  await press("Pagar");
  await page.getByRole("link", { name: "Auditoria" }).click();
  await page.getByLabel("Sobre").fill(order.referenceNumber);
  await press("Filtrar");
  await page.waitForURL(/subject=/);
  const row = page.locator("tbody tr", { hasText: "order.simulate" });
  assert.match(await row.innerText(), /operator:demo/);
  const subjects = await page.locator("td[data-label=Sobre]").allInnerTexts();
  assert.deepEqual([...new Set(subjects)], [order.referenceNumber]);
  await leave();

  const owner = await stage.partnerUser("owner", { allowed: [REFUSED] });
  assert.equal(await owner.page.getByRole("link", { name: "Auditoria" }).count(), 0);
  await owner.open("/audit");
  assert.equal(await owner.heading(), "Sem permissão");
  await owner.leave();
});
