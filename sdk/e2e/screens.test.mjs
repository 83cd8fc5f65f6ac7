// Every screen in every language, on a phone and on a desk: reached as a payer reaches it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DESK, PHONE } from "./support/browser.mjs";
import * as checkout from "./support/checkout.mjs";
import { looksRight } from "./support/looks.mjs";
import { useStage } from "./support/stage.mjs";
import { AMOUNT, HEADINGS, HTML_LANG, LANGUAGES, SENTENCES } from "./support/texts.mjs";

const stage = useStage();

// Browsers write a line of their own for every answer that is not a success.
const NOT_FOUND = /status of 404/;
const UNFIT = /status of 422/;
const NO_NETWORK = /ERR_INTERNET_DISCONNECTED/;

/**
 * `reach` leads a payer to the screen once; then others open the same order in each language. Where
 * a screen exists only in the page, `each` leads every one of them there.
 */
const SCREENS = {
  choose: {},
  phone: { reach: checkout.choosePhone, query: { view: "phone" } },
  phoneError: {
    heading: "phone",
    query: { view: "phone" },
    each: async (page) => {
      await checkout.payByPhone(page, "823456678");
      await page.locator("#phone-error").waitFor();
    },
    sentence: "phoneError",
    allowed: [UNFIT],
  },
  waiting: { reach: (page) => checkout.pushTo(page, "900000003") },
  refused: {
    reach: async (page) => {
      await checkout.pushTo(page, "900002001");
      await stage.service.advance(5);
      await checkout.look(page, "refused");
    },
    sentence: "refused",
  },
  reference: { reach: checkout.chooseReference, sentence: "reference" },
  code: { reach: checkout.chooseCode },
  confirming: {
    reach: async (page) => {
      await checkout.pushTo(page, "900000004");
      await checkout.on(page, "waiting");
      await stage.service.advance(90);
      await checkout.look(page, "confirming");
    },
    sentence: "confirming",
  },
  paid: {
    reach: async (page) => {
      await checkout.pushTo(page, "900000000");
      await stage.service.advance(3);
      await checkout.look(page, "paid");
    },
    sentence: "paid",
  },
  cancelled: { reach: checkout.cancel },
  expired: {
    reach: async (page) => {
      await stage.service.advance(86_400);
      // The session of the page ran out with the order: the page renews itself.
      await checkout.look(page, "expired");
    },
    allowed: [/status of 401/],
  },
  down: { reach: (page) => checkout.pushTo(page, "900000009") },
  missing: { query: { key: "pk_test_00000000-0000-4000-8000-000000000000" }, allowed: [NOT_FOUND] },
  offline: {
    heading: "choose",
    each: async (page) => {
      await page.context().setOffline(true);
      await page.locator("#problem:not([hidden])").waitFor();
    },
    sentence: "offline",
    allowed: [NO_NETWORK],
  },
};

const DEVICES = { phone: PHONE, desktop: DESK };

for (const [name, screen] of Object.entries(SCREENS)) {
  const { reach, each, query, heading = name, sentence, allowed } = screen;
  test(`the screen "${name}" is right in three languages, on a phone and on a desk`, async () => {
    const { order, page, context, leave } = await stage.visit({ allowed });
    await reach?.(page);
    if (reach) await checkout.on(page, heading);
    for (const lang of LANGUAGES) {
      await context.setOffline(false);
      await page.goto(order.url({ lang, ...query }));
      await each?.(page);
      assert.equal((await page.locator("h1").textContent()).trim(), HEADINGS[heading][lang]);
      assert.equal(await page.locator("html").getAttribute("lang"), HTML_LANG[lang]);
      assert.ok((await page.title()).startsWith(HEADINGS[heading][lang]));
      if (sentence) await page.getByText(SENTENCES[sentence][lang]).first().waitFor();
      if (name !== "missing") {
        assert.equal(await page.locator(".amount").textContent(), AMOUNT[lang]);
      }
      for (const [device, viewport] of Object.entries(DEVICES)) {
        await page.setViewportSize(viewport);
        await looksRight(page, `${name}-${lang}-${device}`);
      }
    }
    await leave();
  });
}
