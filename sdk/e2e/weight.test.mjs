// What the checkout costs a payer on a slow phone, and what it leaves behind there.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

const FIRST_LOAD_BYTES_MAX = 25_000;
const STATUS_BYTES_MAX = 300;

/** Bytes over the network, headers and all, of everything this page loads from now on. */
async function countBytes(page) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  const count = { bytes: 0 };
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => {
    count.bytes += encodedDataLength;
  });
  return count;
}

for (const screen of ["choose", "reference", "code", "paid"]) {
  test(`the first load of the screen "${screen}" is light`, async () => {
    const first = await stage.visit();
    if (screen === "reference") await checkout.chooseReference(first.page);
    if (screen === "code") await checkout.chooseCode(first.page);
    if (screen === "paid") await stage.service.simulate(first.order, "confirm");
    await first.leave();
    const { page, leave } = await stage.payer();
    const count = await countBytes(page);
    await page.goto(first.order.url(), { waitUntil: "load" });
    await checkout.on(page, screen);
    assert.ok(count.bytes > 0 && count.bytes <= FIRST_LOAD_BYTES_MAX, `${count.bytes} bytes`);
    await leave();
  });
}

test("an answer about news is short", async () => {
  const { page, leave } = await stage.visit();
  await checkout.pushTo(page, "900000003");
  await checkout.on(page, "waiting");
  const asked = page.waitForResponse((response) => response.url().includes("/status"));
  await page.clock.fastForward(2_000);
  const body = await (await asked).body();
  assert.ok(body.length <= STATUS_BYTES_MAX, `${body.length} bytes`);
  await leave();
});

test("script and style are asked for once, and a new screen is one request", async () => {
  const { page, leave } = await stage.visit();
  await checkout.choosePhone(page);
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await checkout.payByPhone(page, "900000003");
  await checkout.on(page, "waiting");
  assert.equal(asked.filter((path) => path.includes("/assets/")).length, 0);
  await leave();
});

test("a whole payment asks no other host and leaves nothing in the browser", async () => {
  const { page, context, leave } = await stage.payer();
  const hosts = new Set();
  context.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== "data:") hosts.add(origin);
  });
  const setCookies = [];
  context.on("response", async (response) => {
    if ("set-cookie" in response.headers()) setCookies.push(response.url());
  });
  const order = await stage.order();
  await page.goto(order.url());
  await checkout.pushTo(page, "900000000");
  await stage.service.advance(3);
  await checkout.look(page, "paid");
  assert.deepEqual([...hosts], [stage.service.baseUrl]);
  assert.deepEqual(setCookies, []);
  assert.deepEqual(await context.cookies(), []);
  const kept = await page.evaluate(async () => [
    localStorage.length,
    sessionStorage.length,
    (await indexedDB.databases()).length,
    (await navigator.serviceWorker.getRegistrations()).length,
  ]);
  assert.deepEqual(kept, [0, 0, 0, 0]);
  await leave();
});
