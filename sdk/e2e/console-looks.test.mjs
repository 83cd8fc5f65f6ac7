// Every page of the console in every language, on a phone and on a desk, in light and in dark; and by
// keyboard alone. With SVC_DOCS_IMAGES=1 it also takes the pictures of docs/console.md.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { DESK, PHONE } from "./support/browser.mjs";
import { create, useConsole } from "./support/console.mjs";
import { keepPicture, worksFor } from "./support/looks.mjs";

const stage = useConsole({ seed: 60 });

const IMAGES = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const PICTURE_BYTES_MAX = 150_000;
const PAPER = { width: 1120, height: 720 };
const LOCALES = { pt: "pt-AO", en: "en-GB", fr: "fr-FR" };
const MARKS = {
  pt: "SANDBOX · nenhum dinheiro real",
  en: "SANDBOX · no real money",
  fr: "SANDBOX · pas d’argent réel",
};
const HEADINGS = {
  home: ["Início", "Home", "Accueil"],
  orders: ["Encomendas", "Orders", "Commandes"],
  webhooks: ["Webhooks", "Webhooks", "Webhooks"],
  exceptions: ["Excepções", "Exceptions", "Exceptions"],
  developers: ["Programadores", "Developers", "Développeurs"],
  requests: ["Chamadas", "Requests", "Requêtes"],
  audit: ["Auditoria", "Audit", "Audit"],
  people: ["Utilizadores", "Users", "Utilisateurs"],
  account: ["Conta · demo", "Account · demo", "Compte · demo"],
  signIn: ["Consola", "Console", "Console"],
  welcome: ["Bem-vindo, visita", "Welcome, visita", "Bienvenue, visita"],
  missing: ["Não encontrado", "Not found", "Introuvable"],
};
const REFUSED = /status of 4(04|22)/;

/** The addresses of all pages, after something happened on each. */
async function everyPage() {
  stage.merchant.breaks("fechado para obras");
  const [paid, pending, failing] = await Promise.all([
    stage.order({ name: "Enciclopédia ilustrada de Angola em doze volumes, encadernada" }),
    stage.order({ name: "Ténis", amount: 9_003 }),
    stage.order({ name: "Computador", amount: 999_999_999_999 }),
  ]);
  await stage.service.simulate(failing, "cancel");
  await assert.rejects(stage.service.createOrder({ merchant: stage.merchant, amount: -5 }), /422/);
  await stage.service.simulate(pending, "pending");
  await stage.service.advance(10);
  stage.merchant.breaks("");
  await stage.service.simulate(paid, "confirm");
  await stage.merchant.told(paid, "CON");
  const { url } = await create(stage, "visita");
  const [event] = await stage.service.command("webhook", "list", "--limit", "1");
  return {
    home: "",
    orders: "/orders?status=CAN",
    ordersNone: "/orders?from=2001-01-01&to=2001-01-01",
    ordersUnknown: "/search?id=order_desconhecido",
    order: `/orders/${pending.referenceNumber}`,
    orderPaid: `/orders/${paid.referenceNumber}`,
    webhooks: "/webhooks?state=queued",
    webhook: `/webhooks/${event.id}`,
    exceptions: "/exceptions?show=all",
    developers: "/developers",
    requests: "/requests?show=refused",
    audit: `/audit?subject=${pending.referenceNumber}`,
    people: "/people",
    account: "/account",
    signIn: "/sign-in",
    welcome: new URL(url).pathname.replace("/console", ""),
    missing: "/nowhere",
  };
}

const LOOKS = [
  ["phone", PHONE, "light"],
  ["phone", PHONE, "dark"],
  ["desktop", DESK, "light"],
  ["desktop", DESK, "dark"],
];

/** One visitor sees all pages in a language, each of them four ways. */
async function look(pages, lang, place, faults) {
  const { page, open, heading, leave } = await stage.operator({
    locale: LOCALES[lang],
    allowed: [REFUSED],
  });
  for (const [name, path] of Object.entries(pages)) {
    await open(path);
    if (HEADINGS[name]) assert.equal(await heading(), HEADINGS[name][place], name);
    assert.equal(await page.locator("html").getAttribute("lang"), lang);
    for (const [device, viewport, colorScheme] of LOOKS) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      const shown = `console-${name}-${lang}-${device}-${colorScheme}`;
      // Whoever has scrolled to the end still sees which world this is.
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      assert.equal(await page.locator(".mark:visible").innerText(), MARKS[lang]);
      const { y } = await page.locator(".mark").boundingBox();
      assert.ok(y >= 0 && y < 10, `${shown}: the mark stays at the top, not at ${y}`);
      await page.evaluate(() => scrollTo(0, 0));
      if (lang === "pt") await keepPicture(page, shown);
      await worksFor(page, shown, colorScheme === "dark").catch((fault) =>
        faults.push(fault.message),
      );
    }
  }
  await leave();
}

test("every page is right in three languages, on a phone and a desk, in light and dark", async () => {
  const pages = await everyPage();
  const faults = [];
  await Promise.all(Object.keys(LOCALES).map((lang, place) => look(pages, lang, place, faults)));
  assert.deepEqual(faults, []);
  if (process.env.SVC_DOCS_IMAGES) await takePictures(pages);
});

async function takePictures(pages) {
  const [operator, developer] = [await stage.operator(), await stage.partnerUser("developer")];
  for (const [name, file, { page, open }, viewport, colorScheme] of [
    ["home", "home", operator, PAPER, "light"],
    ["order", "order", operator, PAPER, "light"],
    ["webhook", "webhook", operator, PAPER, "light"],
    ["exceptions", "exceptions", operator, PAPER, "light"],
    ["developers", "developers", developer, PAPER, "light"],
    ["order", "phone", operator, PHONE, "dark"],
  ]) {
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    await open(pages[name]);
    const path = `${IMAGES}console-${file}.png`;
    await keepPicture(page, file, { path, fullPage: false });
    assert.ok(statSync(path).size < PICTURE_BYTES_MAX, `${path} is a small file`);
  }
  await Promise.all([operator.leave(), developer.leave()]);
}

test("a page is worked by keyboard: skip link first, then in the order of the page, always seen", async () => {
  const { page, open, leave } = await stage.operator();
  await open("/orders");
  const focused = () =>
    page.evaluate(() => {
      const one = document.activeElement;
      const able = [...document.querySelectorAll("a, button, input:not([type=hidden]), select")];
      const { outlineStyle, outlineWidth } = getComputedStyle(one);
      const box = one.getBoundingClientRect();
      return {
        place: able.indexOf(one),
        text: one.innerText,
        // Nothing that stays at the top may lie over it.
        seen: box.width > 0 && box.top >= 0 && box.bottom <= innerHeight,
        marked: outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2,
      };
    });
  await page.keyboard.press("Tab");
  const first = await focused();
  assert.equal(first.text, "Saltar para o conteúdo");
  assert.ok(first.seen && first.marked);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.keyboard.press("Tab");
  const inside = await page.evaluate(() => document.activeElement.closest("main") !== null);
  assert.ok(inside, "the next is within the content");

  await open("/orders");
  let last = -1;
  for (let step = 0; step < 30; step += 1) {
    await page.keyboard.press("Tab");
    const { place, seen, marked } = await focused();
    // A date has several places of its own.
    assert.ok(place >= last && place - last <= 1, `${last} is followed by ${place}`);
    assert.ok(seen && marked, `place ${place} is seen and marked`);
    last = place;
  }
  assert.ok(last > 12, "the tab key gets on");
  await leave();
});

test("filters and a repair need no mouse", async () => {
  const order = await stage.order();
  const { page, open, told, leave } = await stage.operator();
  await open(`/orders/${order.referenceNumber}`);
  await page.getByRole("button", { name: "Pagar", exact: true }).focus();
  await page.keyboard.press("Enter");
  await told("Feito.");
  await leave();
});

test("without JavaScript the pages show and do the same", async () => {
  const order = await stage.order();
  const { page, open, press, told, leave } = await stage.operator({ script: false });
  await open("/orders?status=PEN");
  await page.getByRole("link", { name: order.referenceNumber }).click();
  await press("Pagar");
  await told("Feito.");
  assert.equal(await page.locator("h1 .pill").innerText(), "paga");
  await leave();
});
