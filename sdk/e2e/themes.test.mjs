// Light, dark, and whatever the phone prefers; long words and large amounts; paper.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DESK } from "./support/browser.mjs";
import * as checkout from "./support/checkout.mjs";
import { keepPicture, looksRight } from "./support/looks.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

const LIGHT = "rgb(255, 255, 255)";
const DARK = "rgb(20, 28, 25)";
const background = (page) =>
  page.locator("main").evaluate((main) => getComputedStyle(main).backgroundColor);

for (const [theme, prefers, expected] of [
  ["light", "dark", LIGHT],
  ["dark", "light", DARK],
  ["auto", "light", LIGHT],
  ["auto", "dark", DARK],
]) {
  test(`the theme ${theme} on a phone that prefers ${prefers} keeps its contrast`, async () => {
    const { page, leave } = await stage.visit({ query: { theme }, colorScheme: prefers });
    assert.equal(await background(page), expected);
    await looksRight(page, `choose-theme-${theme}-on-${prefers}`);
    await checkout.chooseReference(page);
    await looksRight(page, `reference-theme-${theme}-on-${prefers}`);
    await leave();
  });
}

test("the theme survives every step", async () => {
  const { page, leave } = await stage.visit({ query: { theme: "dark" } });
  await checkout.pushTo(page, "900000003");
  await checkout.on(page, "waiting");
  await looksRight(page, "waiting-theme-dark");
  await stage.service.advance(90);
  await checkout.look(page, "refused");
  await looksRight(page, "refused-theme-dark");
  await page.reload();
  assert.equal(await background(page), DARK);
  await leave();
});

test("a long name and the largest amount fit on the smallest phone", async () => {
  const terms = { name: "Enciclopédia".repeat(20), amount: 999_999_999_999 };
  const { page, leave } = await stage.visit({
    order: terms,
    viewport: { width: 320, height: 568 },
  });
  await looksRight(page, "choose-long");
  // No rail but our own takes as much.
  assert.equal(await page.locator(".method").count(), 1);
  await checkout.chooseCode(page);
  await looksRight(page, "code-long");
  await leave();
});

/** A word that begins on one line ends on it. */
const isWhole = (target) =>
  target.evaluate((one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return new Set([...range.getClientRects()].map(({ top }) => top)).size === 1;
  });

test("money is one word, on the proof and beside it", async () => {
  const { page, order, leave } = await stage.visit({ order: { amount: 1_250_000 } });
  await page.setViewportSize(DESK);
  assert.ok(await isWhole(page.locator(".amount")));
  await stage.service.simulate(order, "confirm");
  await checkout.look(page, "paid");
  for (const width of [DESK.width, 360, 320, 280]) {
    await page.setViewportSize({ width, height: 640 });
    assert.ok(await isWhole(page.locator(".facts dd").first()), `${width}`);
  }
  await leave();
});

test("letters more than twice as large leave every digit on the screen", async () => {
  // As many of its own letters fit into a line as with a zoom of 240 percent.
  const viewport = { width: 150, height: 308 };
  const { page, leave } = await stage.visit({ viewport, query: { view: "phone" } });
  const field = page.locator("#phone");
  await field.fill("900000003");
  assert.ok(await field.evaluate((one) => one.scrollWidth <= one.clientWidth), "all nine digits");
  await looksRight(page, "phone-zoomed");
  for (const [screen, choose] of [
    ["code", checkout.chooseCode],
    ["reference", checkout.chooseReference],
  ]) {
    await page.getByRole("link", { name: "Outro método" }).click();
    await checkout.on(page, "choose");
    await looksRight(page, "choose-zoomed");
    await choose(page);
    await looksRight(page, `${screen}-zoomed`);
  }
  await leave();
});

test("an amount that the shop hides is on the button and the slip alone", async () => {
  const { page, leave } = await stage.visit({ query: { amount: "0" } });
  const head = page.locator("header.order");
  await checkout.choosePhone(page);
  assert.ok(!(await head.textContent()).includes("15.000"));
  assert.match(await page.locator("button.first").textContent(), /15\.000/);
  await page.getByText("Outro método").click();
  await checkout.on(page, "choose");
  await checkout.chooseReference(page);
  assert.ok(!(await head.textContent()).includes("15.000"));
  assert.match((await checkout.slip(page)).join(), /15\.000/);
  await leave();
});

test("the printed slip has entity, reference and amount on one sheet, and nothing to press", async () => {
  const { page, leave } = await stage.visit();
  await checkout.chooseReference(page);
  const figures = await checkout.slip(page);
  await onPaper(page, "reference-print", figures);
  await leave();
});

test("the printed proof has amount, date, method and numbers on one sheet", async () => {
  const name = "Enciclopédia da cozinha de Angola, em doze volumes ".repeat(4).trim();
  const { order, page, leave } = await stage.visit({ order: { name } });
  await checkout.pushTo(page, "900000000");
  await stage.service.advance(3);
  await checkout.look(page, "paid");
  const { referenceNumber, externalTransactionId } = order;
  const facts = ["15.000,00\u00a0Kz", "Multicaixa Express", referenceNumber, externalTransactionId];
  await onPaper(page, "paid-print", facts);
  const label = page.locator(".label");
  assert.ok(await label.evaluate((one) => one.scrollHeight <= one.clientHeight), "all of the name");
  await leave();
});

async function onPaper(page, name, facts) {
  await page.emulateMedia({ media: "print" });
  const printed = await page.locator("body").innerText();
  for (const fact of facts) assert.ok(printed.includes(fact), `${fact} is printed`);
  assert.equal(await page.locator("button:visible, a:visible, summary:visible").count(), 0);
  const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
  assert.equal(pdf.match(/\/Type\s*\/Page\b/g).length, 1);
  await keepPicture(page, name);
}
