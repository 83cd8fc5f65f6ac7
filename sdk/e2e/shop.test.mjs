// The whole mission in one browser: shop, cart, button, window, payment, webhook, parcel.

import assert from "node:assert/strict";
import { test } from "node:test";
import { PHONE } from "./support/browser.mjs";
import * as checkout from "./support/checkout.mjs";
import { loaded, settle } from "./support/sdk.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

/** How many books nobody has reserved, as the shop's page says. */
async function inStock() {
  const html = await (await fetch(stage.service.shopUrl)).text();
  return Number(/data-free="livro-receitas">(\d+)</.exec(html)[1]);
}

/** A payer with a book in the cart, and the window that the shop's button opens. */
async function atTheTill(options) {
  const visitor = await stage.payer(options);
  const { page } = visitor;
  await page.goto(`${stage.service.shopUrl}/?lang=pt`);
  await page.locator("[data-add=livro-receitas]").click();
  const opened = page.waitForEvent("popup");
  await page.locator("#pay button").click();
  const popup = await opened;
  await loaded(popup);
  return { ...visitor, popup };
}

/** The order's page shows that the shop's backend did its part. */
async function isSent(page) {
  await page.waitForURL(/\/success/);
  const steps = page.locator("#story li");
  await page.locator('#story [data-what="fulfilled"]').waitFor();
  const story = await steps.evaluateAll((all) => all.map((one) => one.dataset.what));
  assert.deepEqual(
    story.filter((what) => what !== "query"),
    ["created", "reference", "webhook", "webhook", "fulfilled"],
    "created, its reference, PEN and CON verified, sent",
  );
}

/** Somebody pays the reference at a cash machine. */
async function payAtMachine(context, entity, reference) {
  const machine = await context.newPage();
  const query = new URLSearchParams({ entity, reference, amount: "15000" });
  await machine.goto(`${stage.service.baseUrl}/sandbox/atm?${query}`);
  await machine.getByRole("button", { name: "Pagar" }).click();
  await machine.getByText("Pago", { exact: true }).waitFor();
  await machine.close();
}

/** Looks again and again until it is so. */
async function until(isSo) {
  const deadline = AbortSignal.timeout(15_000);
  while (!(await isSo())) deadline.throwIfAborted();
}

const idOf = (page) => new URL(page.url()).searchParams.get("orderId");
const orderOf = async (id) => (await fetch(`${stage.service.shopUrl}/api/shop/order/${id}`)).json();

test("on a phone the cart stays in sight, and a touch leads to it", async () => {
  const { page, leave } = await stage.payer();
  await page.goto(`${stage.service.shopUrl}/?lang=pt`);
  const bar = page.locator("#bar");
  assert.ok(!(await bar.isVisible()), "the cart is empty");
  await page.locator("[data-add=livro-receitas]").click();
  const { y, height } = await bar.boundingBox();
  assert.ok(y + height <= PHONE.height, `${y} + ${height}`);
  assert.match(await bar.textContent(), /1\s+15\.000,00\u00a0Kz/);
  await bar.click();
  const pay = await page.locator("#pay button").boundingBox();
  assert.ok(pay.y + pay.height <= PHONE.height, "it can be paid now");
  await leave();
});

test("bought with the express wallet", async () => {
  const before = await inStock();
  const { page, popup, leave } = await atTheTill();
  assert.equal(await inStock(), before - 1, "reserved with the order");
  await checkout.pushTo(popup, "900000000");
  await stage.service.advance(3);
  await checkout.look(popup, "paid");
  await checkout.goBack(popup);
  await isSent(page);
  assert.equal(await inStock(), before - 1, "sent once");
  await leave();
});

test("a shop that was loaded again while its order was paid does not sell it twice", async () => {
  const { page, popup, leave } = await atTheTill();
  await checkout.pushTo(popup, "900000000");
  await page.reload();
  await stage.service.advance(3);
  await checkout.look(popup, "paid");
  // Nobody closes it: the link leads to the shop, which shows the order.
  await popup.getByText("Voltar à loja").click();
  await popup.waitForURL(/\/success/);
  await page.reload();
  await page.waitForURL(/\/success/);
  await leave();
});

test("a shop that was loaded again goes on with the order it began", async () => {
  const before = await inStock();
  const { page, popup, leave } = await atTheTill();
  await checkout.pushTo(popup, "900000001");
  await checkout.on(popup, "waiting");
  const number = (window) => new URL(window.url()).pathname;
  await page.reload();
  const opened = page.waitForEvent("popup");
  await page.locator("#pay button").click();
  const second = await opened;
  await checkout.on(second, "waiting");
  assert.equal(number(second), number(popup), "nobody is asked to pay twice");
  assert.equal(await inStock(), before - 1);
  await stage.service.advance(30);
  await checkout.look(second, "paid");
  await checkout.goBack(second);
  await isSent(page);
  await leave();
});

test("a shop that was loaded again leads to the order when it is paid", async () => {
  const { page, popup, leave } = await atTheTill();
  await checkout.pushTo(popup, "900000001");
  await checkout.on(popup, "waiting");
  await page.reload();
  await page.locator("[data-add=cafe-amboim]").click();
  await stage.service.advance(30);
  await until(async () => {
    await settle(page, 5_000);
    return new URL(page.url()).pathname === "/success";
  });
  await isSent(page);
  await page.goto(`${stage.service.shopUrl}/?lang=pt`);
  assert.deepEqual(await page.locator("#cart li span").allTextContents(), [
    "1 × Café do Amboim, 250 g",
  ]);
  await leave();
});

test("a code that was not approved is found again from the shop", async () => {
  const { page, popup, leave } = await atTheTill();
  await checkout.chooseCode(popup);
  await popup.close();
  await until(async () => {
    await settle(page, 1_000);
    return new URL(page.url()).pathname === "/pending";
  });
  await page.getByRole("heading", { name: "Falta pagar" }).waitFor();
  await page.getByRole("link", { name: "Abrir o pagamento" }).click();
  await checkout.on(page, "code");
  await leave();
});

test("bought with the wallet of the service", async () => {
  const { context, page, popup, leave } = await atTheTill();
  await checkout.chooseCode(popup);
  const opened = context.waitForEvent("page");
  await popup.locator("a.first").click();
  const wallet = await opened;
  await wallet.getByRole("button", { name: "Autorizar" }).click();
  await wallet.getByText("Pago", { exact: true }).waitFor();
  await wallet.close();
  await checkout.look(popup, "paid");
  await checkout.goBack(popup);
  await isSent(page);
  await leave();
});

test("bought with a bank reference that is paid the next day", async () => {
  const { context, page, popup, leave } = await atTheTill();
  await checkout.chooseReference(popup);
  const [entity, reference] = await checkout.slip(popup);
  await checkout.goBack(popup);
  await page.waitForURL(/\/pending/);
  assert.deepEqual(await page.locator("dd").allTextContents(), [
    entity,
    reference,
    "15.000,00\u00a0Kz",
  ]);
  await payAtMachine(context, entity, reference);
  // The page that was left open is told of it, and sooner than by the stream's sign of life (15 s).
  await page.locator('#story [data-what="fulfilled"]').waitFor({ timeout: 8_000 });
  await page.getByRole("heading", { name: "Obrigado!" }).waitFor();
  assert.equal(await page.locator("dd").count(), 0, "there is nothing left to pay");
  assert.equal((await orderOf(idOf(page))).status, "CON");
  await leave();
});

test("a page that cannot be told asks by itself", async () => {
  const { context, page, popup, leave } = await atTheTill({ allowed: [/Failed to load resource/] });
  await context.route("**/events", (route) => route.abort());
  await checkout.chooseReference(popup);
  const [entity, reference] = await checkout.slip(popup);
  await checkout.goBack(popup);
  await page.waitForURL(/\/pending/);
  await payAtMachine(context, entity, reference);
  const sent = page.locator('#story [data-what="fulfilled"]');
  await until(async () => {
    await settle(page, 2_000);
    return (await sent.count()) === 1;
  });
  await leave();
});

test("a page without JavaScript tells the same when it is loaded again", async () => {
  const { context, page, popup, leave } = await atTheTill();
  await checkout.chooseReference(popup);
  const [entity, reference] = await checkout.slip(popup);
  await checkout.goBack(popup);
  await page.waitForURL(/\/pending/);
  const plain = await stage.payer({ script: false });
  await plain.page.goto(page.url());
  await plain.page.getByRole("heading", { name: "Falta pagar" }).waitFor();
  assert.equal(await plain.page.locator("#story li").count(), 3, "created, reference, PEN");
  await payAtMachine(context, entity, reference);
  await page.locator('#story [data-what="fulfilled"]').waitFor();
  await plain.page.getByText("Ver se há novidades").click();
  await plain.page.locator('#story [data-what="fulfilled"]').waitFor();
  await plain.page.getByRole("heading", { name: "Obrigado!" }).waitFor();
  await plain.leave();
  await leave();
});

test("a reference that nobody paid: what was in the order is in the cart again", async () => {
  const { page, popup, leave } = await atTheTill();
  await checkout.chooseReference(popup);
  await checkout.goBack(popup);
  await page.waitForURL(/\/pending/);
  await stage.service.simulate({ externalTransactionId: idOf(page) }, "expire");
  await page.getByRole("heading", { name: "Pagamento cancelado" }).waitFor();
  await page.goto(`${stage.service.shopUrl}/?lang=pt`);
  assert.match(await page.locator("#cart").textContent(), /1 × Livro/);
  await leave();
});

test("given up in the window", async () => {
  const before = await inStock();
  const { page, popup, leave } = await atTheTill();
  assert.equal(await inStock(), before - 1, "reserved with the order");
  await checkout.cancel(popup);
  await page.waitForURL(/\/cancelled/);
  await page.locator('#story [data-what="webhook"]').waitFor();
  assert.equal((await orderOf(idOf(page))).status, "CAN");
  assert.equal(await inStock(), before, "given back");
  await leave();
});

test("paid, and the browser closed at once: the order is sent all the same", async () => {
  const { page, popup, leave } = await atTheTill();
  const id = await page.evaluate("order");
  await checkout.pushTo(popup, "900000001");
  await leave();
  await stage.service.advance(30);
  await until(async () => {
    const { status, story } = await orderOf(id);
    return status === "CON" && story.some(({ what }) => what === "fulfilled");
  });
});
