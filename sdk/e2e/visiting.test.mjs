// Reloads, the back button, impatient fingers, keyboards, and browsers without scripts.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

test("a reload while a push waits shows it waiting, with the time that is left", async () => {
  const { page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000003");
  await checkout.on(page, "waiting");
  await stage.service.advance(40);
  await page.reload();
  await checkout.on(page, "waiting");
  assert.ok(Number(await page.locator(".seconds").textContent()) <= 50);
  assert.equal(await checkout.attempts(page), 1);
  await leave();
});

test("a reload shows the same reference, and so does a second visit", async () => {
  const { order, page, context, leave } = await stage.visit();
  await checkout.chooseReference(page);
  const shown = await checkout.slip(page);
  await page.reload();
  assert.deepEqual(await checkout.slip(page), shown);
  const second = await context.newPage();
  await second.goto(order.url());
  assert.deepEqual(await checkout.slip(second), shown);
  await leave();
});

test("a reload shows the same code", async () => {
  const { page, leave } = await stage.visit();
  await checkout.chooseCode(page);
  const code = await page.locator(".figure").textContent();
  await page.reload();
  assert.equal(await page.locator(".figure").textContent(), code);
  await leave();
});

test("back leads from the number to the choice, and forward to the number", async () => {
  const { page, leave } = await stage.visit();
  await checkout.choosePhone(page);
  await page.goBack();
  await checkout.on(page, "choose");
  await page.goForward();
  await checkout.on(page, "phone");
  await leave();
});

test("back does no harm while a push waits or after it is paid", async () => {
  const { page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000001");
  await checkout.on(page, "waiting");
  const answered = page.waitForResponse((response) => response.url().includes("/checkout/"));
  await page.goBack();
  await answered;
  await checkout.on(page, "waiting");
  assert.equal(await checkout.attempts(page), 1);
  await stage.service.advance(30);
  await checkout.look(page, "paid");
  await page.goForward();
  await checkout.on(page, "paid");
  await leave();
});

test("a double click on pay is one attempt", async () => {
  const { page, leave } = await stage.visit();
  await checkout.choosePhone(page);
  let posts = 0;
  page.on("request", (request) => {
    if (request.method() === "POST") posts += 1;
  });
  await page.locator("#phone").fill("900000003");
  await checkout.ready(page);
  await page.locator("form button.first").dblclick();
  await checkout.on(page, "waiting");
  assert.equal(posts, 1);
  assert.equal(await checkout.attempts(page), 1);
  await leave();
});

test("pay pressed in two windows at once is one attempt", async () => {
  const order = await stage.order();
  const { page, context, leave } = await stage.payer();
  await checkout.withholdNews(context);
  const other = await context.newPage();
  await Promise.all([page, other].map((one) => one.goto(order.url({ view: "phone" }))));
  await Promise.all([page, other].map((one) => checkout.payByPhone(one, "900000003")));
  await Promise.all([page, other].map((one) => checkout.on(one, "waiting")));
  assert.equal(await checkout.attempts(page), 1);
  assert.equal(await checkout.attempts(other), 1);
  await leave();
});

test("a click in the first half second does not pay", async () => {
  const { page, context, leave } = await stage.visit({ query: { view: "phone" } });
  await page.clock.pauseAt(Date.now() + 60_000);
  await page.reload();
  let posts = 0;
  context.on("request", (request) => {
    if (request.method() === "POST") posts += 1;
  });
  await page.locator("#phone").fill("900000003");
  const button = page.locator("form button.first");
  await page.clock.runFor(499);
  await button.click();
  assert.equal(posts, 0);
  await page.clock.runFor(1);
  await button.click();
  await checkout.on(page, "waiting");
  assert.equal(posts, 1);
  await leave();
});

test("a keyboard is enough, and the focus can be seen and follows the screens", async () => {
  const { page, leave } = await stage.visit();
  await tabTo(page, "a.method");
  await page.keyboard.press("Enter");
  await checkout.on(page, "phone");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
  await tabTo(page, "#phone");
  await page.keyboard.type("900000001");
  await checkout.ready(page);
  await page.keyboard.press("Enter");
  await checkout.on(page, "waiting");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
  await tabTo(page, ".cancel summary");
  await page.keyboard.press("Enter");
  await tabTo(page, ".cancel button");
  await stage.service.advance(30);
  await checkout.look(page, "paid");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
  await tabTo(page, "a.first");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${stage.merchant.origin}/ok?*`);
  await leave();
});

test("a wrong number gets the focus and is read out with its error", async () => {
  const { page, leave } = await stage.visit({
    query: { view: "phone" },
    allowed: [/status of 422/],
  });
  await checkout.payByPhone(page, "12345");
  await page.locator("#phone-error").waitFor();
  const field = page.locator("#phone");
  assert.equal(await field.inputValue(), "12345");
  assert.ok(await field.evaluate((one) => one === document.activeElement));
  assert.equal(await field.getAttribute("aria-describedby"), "phone-error phone-hint");
  await leave();
});

test("without scripts a reference is issued and shown, with no button that does nothing", async () => {
  const { page, leave } = await stage.visit({ script: false });
  await page.locator('form:has([value="FPSOLPGEXT"]) button').click();
  await checkout.on(page, "reference");
  assert.equal((await checkout.slip(page)).length, 3);
  assert.equal(await page.locator("[data-copy]:visible, [data-print]:visible").count(), 0);
  await leave();
});

test("without scripts a push is sent once, watched by reloads, and paid", async () => {
  const { page, leave } = await stage.visit({ script: false });
  await page.locator("a.method").click();
  await page.locator("#phone").fill("900000001");
  await page.locator("form button.first").dblclick();
  await checkout.on(page, "waiting");
  assert.equal(await checkout.attempts(page), 1);
  const refresh = page.locator('meta[http-equiv="refresh"]');
  assert.equal(await refresh.getAttribute("content"), "15", "time to cancel");
  await stage.service.advance(30);
  await page.reload();
  await checkout.on(page, "paid");
  assert.equal(await page.locator('meta[http-equiv="refresh"]').count(), 0);
  await leave();
});

test("without scripts a wrong number is told of, and an order can be cancelled", async () => {
  const { page, leave } = await stage.visit({ script: false, allowed: [/status of 422/] });
  await page.locator("a.method").click();
  await page.locator("#phone").fill("12345");
  await page.locator("form button.first").click();
  await page.locator("#phone-error").waitFor();
  await page.locator(".cancel summary").click();
  await page.locator(".cancel button").click();
  await checkout.on(page, "cancelled");
  await leave();
});

const TABS_MAX = 20;

/** Presses Tab until this has the focus, and insists that one sees where the focus is. */
async function tabTo(page, selector) {
  for (let tabs = 0; tabs < TABS_MAX; tabs += 1) {
    await page.keyboard.press("Tab");
    const found = await page.evaluate((wanted) => {
      const at = document.activeElement;
      if (!at.matches(wanted)) return undefined;
      const ring = getComputedStyle(at).outlineStyle !== "none";
      const glow = getComputedStyle(at.closest(".field") ?? at).boxShadow !== "none";
      return ring || glow;
    }, selector);
    if (found === undefined) continue;
    assert.ok(found, `the focus on ${selector} can be seen`);
    return;
  }
  assert.fail(`no way to ${selector} by Tab`);
}
