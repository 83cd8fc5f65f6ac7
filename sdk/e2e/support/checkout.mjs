// What a payer does on the hosted checkout, in the payer's words.

export function checkoutUrl({ baseUrl, publishableKey }, { referenceNumber }, query = {}) {
  const options = new URLSearchParams({ key: publishableKey, ...query });
  return `${baseUrl}/checkout/${referenceNumber}?${options}`;
}

/** The screen is there. */
export function on(page, screen) {
  return page.locator(`main[data-screen="${screen}"]`).waitFor();
}

// A page takes no order to pay in its first half second, and asks for news every two seconds.
const ARMED_AFTER_MS = 500;
const POLL_EVERY_MS = 2_000;

/** The payer has looked at the screen for long enough that a click counts. */
export async function ready(page) {
  // Its script counts from when it runs: before that, no time that passes is seen.
  await page.waitForLoadState("load");
  await page.clock.fastForward(ARMED_AFTER_MS);
}

/** The page asks for news now, and shows this screen because of them. */
export async function look(page, screen) {
  await page.clock.fastForward(POLL_EVERY_MS);
  await on(page, screen);
}

/** From now on the payer's pages get no news: what they ask for stays unanswered. */
export function withholdNews(context) {
  return context.route("**/status?*", () => {});
}

export async function press(page, target) {
  await ready(page);
  await target.click();
}

/** The button of a method that needs nothing more than a click. */
export function method(page, code) {
  return page.locator(`form:has(input[name="method"][value="${code}"]) button`);
}

export async function choosePhone(page) {
  await page.locator("a.method").click();
  await on(page, "phone");
}

export async function payByPhone(page, number) {
  await page.locator("#phone").fill(number);
  await press(page, page.locator("form button.first"));
}

/**
 * From the choice to the number sent. The numbers that answer within seconds may have answered before
 * anybody looks, so what comes next is left open.
 */
export async function pushTo(page, number) {
  await choosePhone(page);
  await payByPhone(page, number);
  await page.locator('main:not([data-screen="phone"])').waitFor();
}

export async function chooseReference(page) {
  await press(page, method(page, "FPSOLPGEXT"));
  await on(page, "reference");
}

export async function chooseCode(page) {
  await press(page, method(page, "FPSOLPG"));
  await on(page, "code");
}

export async function cancel(page) {
  await page.locator(".cancel summary").click();
  await press(page, page.locator(".cancel button"));
}

/** How often this order was tried, as the page knows it. */
export async function attempts(page) {
  const version = await page.locator("main").getAttribute("data-version");
  return Number(version.split("-")[1]);
}

/** The figures of the slip as they are shown: entity, reference, amount. */
export function slip(page) {
  return page.locator(".slip .figure").allTextContents();
}

/** The way back to the shop, which closes a window that a shop opened. */
export async function goBack(popup) {
  const gone = popup.waitForEvent("close");
  await popup
    .getByText("Voltar à loja")
    .click()
    .catch((fault) => {
      // The window may be gone before the click is reported.
      if (!popup.isClosed()) throw fault;
    });
  await gone;
}
