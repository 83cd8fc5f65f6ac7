// Light, dark, and whatever the phone prefers; long words and large amounts; paper.

import assert from "node:assert/strict";
import { test } from "node:test";
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
  const { order, page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000000");
  await stage.service.advance(3);
  await checkout.look(page, "paid");
  const { referenceNumber, externalTransactionId } = order;
  const facts = ["15.000,00\u00a0Kz", "Multicaixa Express", referenceNumber, externalTransactionId];
  await onPaper(page, "paid-print", facts);
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
