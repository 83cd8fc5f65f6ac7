// A shop's page with the SDK's button, and a payer who presses it.

import { on } from "./checkout.mjs";

/** A payer on the shop's page. `orders` makes what createOrder returns. */
export async function shopper(stage, { path = "/sdk", options, orders, origin, ...rest } = {}) {
  const visitor = await stage.payer(rest);
  const { page } = visitor;
  const made = [];
  const make =
    orders ??
    (async () => {
      const order = await stage.order();
      made.push(order);
      return order.referenceNumber;
    });
  await page.exposeFunction("newOrder", make);
  const { baseUrl, publishableKey } = stage.service;
  const query = new URLSearchParams({ service: baseUrl, key: publishableKey });
  if (options) query.set("options", JSON.stringify(options));
  await page.goto(`${origin ?? stage.merchant.origin}${path}?${query}`);
  await page.waitForFunction("ready.then(() => true)");
  return { ...visitor, made, button: page.locator("#pay button") };
}

/** The window that a click opens, once the checkout is in it. */
export async function openWindow({ page, button }) {
  const opened = page.waitForEvent("popup");
  await button.click();
  const popup = await opened;
  await loaded(popup);
  return popup;
}

/**
 * Its script runs, and has heard of the service. A window that is closed before that is one whose page never
 * came to life; and a page that is busy may not get to its last word: a browser gives it half a second.
 */
export async function loaded(popup) {
  await on(popup, "choose");
  const isQuestion = (request) => request.url().includes("/status?");
  const coming = popup.waitForRequest(isQuestion);
  const asked = (await popup.requests()).find(isQuestion);
  const answers = [asked, coming].filter(Boolean);
  await Promise.race(answers.map(async (request) => (await request).response()));
}

export const calls = (page) => page.evaluate("calls");
export const closed = (page) => page.evaluate("closed");

/** The one callback of a click. */
export async function called(page, name) {
  await page.waitForFunction((wanted) => calls.some(([one]) => one === wanted), name);
  const all = await calls(page);
  if (all.length !== 1) throw new Error(`one callback, not ${JSON.stringify(all)}`);
  return all[0];
}

/** The page's timers run on, so that whatever else it might call would be called. */
export async function settle(page, milliseconds = 10_000) {
  for (let gone = 0; gone < milliseconds; gone += 500) {
    // The clock is that of all the payer's windows, and one of them may be closing.
    await page.clock.fastForward(500).catch((fault) => {
      if (page.isClosed()) throw fault;
    });
  }
}

/** The page was told once that the window is closed. */
export async function toldClosed(page, by) {
  await page.waitForFunction("closed.length > 0");
  const all = await closed(page);
  if (all.join() !== by) throw new Error(`closed once, by ${by}, not ${all}`);
}
