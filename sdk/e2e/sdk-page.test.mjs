// The SDK's button on the page: rendered, pressed, misused.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import { called, calls, openWindow, settle, shopper } from "./support/sdk.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

test("the button is a real one, with a name in the page's language and room for a thumb", async () => {
  for (const [lang, name] of [
    ["pt", "Pagar"],
    ["en", "Pay"],
    ["fr", "Payer"],
  ]) {
    const { button, leave } = await shopper(stage, { options: { config: { lang } } });
    assert.equal(await button.textContent(), name);
    const { height, width } = await button.boundingBox();
    assert.ok(height >= 48 && width > 300, `${width} × ${height}`);
    await leave();
  }
});

test("the button is as wide as its page says, by whatever the browser takes for a width", async () => {
  const { page, leave } = await shopper(stage, { allowed: [/width must be/] });
  const widths = ["320px", "50vw", "calc(100% - 20px)", "100%;background:url(//evil)", "wide", ""];
  const shown = await page.evaluate(async (given) => {
    const found = [];
    for (const width of given) {
      await button({ options: { style: { width } } });
      found.push(document.querySelector("#pay > div").style.width);
    }
    return found;
  }, widths);
  assert.deepEqual(shown, ["320px", "50vw", "calc(100% - 20px)", "100%", "100%", "100%"]);
  await leave();
});

test("rendered twice it is one button, and two containers have two", async () => {
  const { page, leave } = await shopper(stage);
  await page.evaluate("button().then(() => button({}, '#other'))");
  assert.equal(await page.locator("#pay button").count(), 1);
  assert.equal(await page.locator("#other button").count(), 1);
  await page.evaluate("button({}, document.getElementById('other')).then((one) => one.destroy())");
  assert.equal(await page.locator("#other button").count(), 0);
  await leave();
});

test("rendered again while somebody pays, the payment goes on and is told once", async () => {
  const visitor = await shopper(stage);
  const { page, leave } = visitor;
  const popup = await openWindow(visitor);
  await page.evaluate("button()");
  assert.equal(await page.locator("#pay button").getAttribute("aria-busy"), "true");
  await checkout.cancel(popup);
  await called(page, "cancel");
  assert.equal(await page.locator("#pay button").getAttribute("aria-busy"), "false");
  await leave();
});

test("loaded twice the script is the same, and answers once", async () => {
  const visitor = await shopper(stage);
  const { page, leave } = visitor;
  assert.equal(await page.evaluate("(first => load().then(() => first === Svc))(Svc)"), true);
  const popup = await openWindow(visitor);
  await checkout.cancel(popup);
  await called(page, "cancel");
  await leave();
});

test("loaded as a module the script says how it must be loaded", async () => {
  const { page, leave } = await shopper(stage);
  const src = `${stage.service.baseUrl}/sdks/v1/svc.min.js`;
  await page.evaluate("delete window.Svc");
  await page.addScriptTag({ url: src, type: "module" });
  const told = await page.evaluate(
    `(() => { try { button() } catch (error) { return error; } })()`,
  );
  assert.match(String(told), /without type="module"/);
  await leave();
});

test("a live key works on this machine, by whatever name", async () => {
  for (const origin of [stage.merchant.origin, stage.merchant.elsewhere]) {
    const { page, leave } = await shopper(stage, { origin });
    assert.equal(await page.evaluate("typeof Svc('pk_live_0b6f').generateButton"), "function");
    await leave();
  }
});

test("an element that calls itself Svc is not the SDK", async () => {
  const { page, leave } = await shopper(stage);
  await page.evaluate(
    `delete window.Svc; document.body.insertAdjacentHTML("beforeend", '<p id="Svc">')`,
  );
  await page.evaluate("load()");
  assert.equal(await page.evaluate("typeof Svc"), "function");
  await leave();
});

test("pressed three times it makes one order and one window", async () => {
  const visitor = await shopper(stage);
  const { page, button, made, leave } = visitor;
  await button.evaluate((element) => {
    for (let n = 0; n < 3; n += 1) element.click();
  });
  const [, popup] = page.context().pages();
  await checkout.on(popup, "choose");
  assert.equal(made.length, 1);
  assert.equal(page.context().pages().length, 2);
  await leave();
});

test("a container that is removed takes nothing down with it", async () => {
  const visitor = await shopper(stage);
  const { page, leave } = visitor;
  const popup = await openWindow(visitor);
  await page.evaluate("document.getElementById('pay').remove()");
  await checkout.cancel(popup);
  await called(page, "cancel");
  await leave();
});

test("a destroyed button calls nobody", async () => {
  const visitor = await shopper(stage);
  const { page, leave } = visitor;
  await page.evaluate("button().then((one) => { window.one = one; })");
  const popup = await openWindow(visitor);
  await page.evaluate("one.destroy()");
  await page.waitForFunction(() => document.querySelectorAll("body > div").length === 2);
  assert.ok(popup.isClosed() || (await popup.waitForEvent("close")));
  await settle(page);
  assert.deepEqual(await calls(page), []);
  await leave();
});

test("createOrder must give a reference", async () => {
  for (const wrong of ["", "  ", null, 42, {}]) {
    const { page, button, leave } = await shopper(stage, { orders: () => wrong });
    await button.click();
    const [, code] = await called(page, "error");
    assert.equal(code, "invalid_reference", JSON.stringify(wrong));
    // Its window is closed, which takes the browser a moment.
    for (const other of page.context().pages())
      if (other !== page) await other.waitForEvent("close");
    assert.equal(await button.getAttribute("aria-busy"), "false", "it can be pressed again");
    await leave();
  }
});

test("a createOrder that fails is told once, and a second try works", async () => {
  let tries = 0;
  const orders = async () => {
    tries += 1;
    if (tries === 1) throw new Error("the shop is tired");
    return (await stage.order()).referenceNumber;
  };
  const visitor = await shopper(stage, { orders });
  await visitor.button.click();
  const [, code] = await called(visitor.page, "error");
  assert.equal(code, "create_order_failed");
  const popup = await openWindow(visitor);
  await checkout.cancel(popup);
  await visitor.page.waitForFunction("calls.length === 2");
  await visitor.leave();
});

test("a createOrder that never answers is given up after 30 seconds", async () => {
  const { page, button, leave } = await shopper(stage, { orders: () => new Promise(() => {}) });
  await button.click();
  // The clock of the page also moves by itself, and a busy machine may take seconds for this.
  await settle(page, 20_000);
  assert.deepEqual(await calls(page), []);
  await settle(page, 11_000);
  const [, code] = await called(page, "error");
  assert.equal(code, "create_order_timeout");
  await leave();
});

test("a reference that is not known is told with the request's id", async () => {
  const orders = () => "01JC4E9V7Q3M8Y5T2K6R1N0WXZ";
  const { page, button, leave } = await shopper(stage, { orders, allowed: [/status of 404/] });
  await button.click();
  await settle(page, 3_000);
  const [, code, , requestId] = await called(page, "error");
  assert.equal(code, "order_not_found");
  assert.match(requestId, /^[0-9a-f]{24}$/);
  await leave();
});

test("a callback that throws is told to onError, and the next payment works", async () => {
  const visitor = await shopper(stage);
  const { page, leave } = visitor;
  let told = 0;
  for (const throws of [
    "() => { throw new Error('a slip'); }",
    "async () => { throw new Error('a slip'); }",
  ]) {
    await page.evaluate(`button({ onCancel: ${throws} })`);
    const popup = await openWindow(visitor);
    await checkout.cancel(popup);
    told += 1;
    await page.waitForFunction(`calls.length === ${told}`);
    assert.deepEqual((await calls(page)).at(-1).slice(0, 2), ["error", "callback_failed"]);
  }
  await page.evaluate("button()");
  const second = await openWindow(visitor);
  await checkout.cancel(second);
  await page.waitForFunction(`calls.length === ${told + 1}`);
  await leave();
});

test("where nobody listens for errors, they stand on the console", async () => {
  const orders = () => "";
  const { page, button, leave } = await shopper(stage, { orders, allowed: [/createOrder must/] });
  await page.evaluate("button({ onError: undefined })");
  const told = page.waitForEvent("console", (message) => message.type() === "error");
  await button.click();
  assert.match((await told).text(), /createOrder must return the referenceNumber/);
  await leave();
});

test("of two elements that match, the first gets the button, with a warning", async () => {
  const { page, leave } = await shopper(stage, { allowed: [/matches 2 elements/] });
  const told = page.waitForEvent("console", (line) => /matches 2 elements/.test(line.text()));
  await page.evaluate("button({}, '#pay, #other')");
  await told;
  assert.equal(await page.locator("#pay button").count(), 1);
  assert.equal(await page.locator("#other button").count(), 0);
  await leave();
});

/** Tasks of more than 50 ms while the script loads and makes a button. */
function longTasks(page) {
  return page.evaluate(
    () =>
      new Promise((resolve) => {
        const seen = [];
        const observer = new PerformanceObserver((list) => {
          seen.push(...list.getEntries().map(({ duration }) => duration));
        });
        observer.observe({ type: "longtask", buffered: true });
        load()
          .then(() => button({}, "#other"))
          // What took long is reported with the next task.
          .then(() => setTimeout(() => resolve(seen), 0));
      }),
  );
}

test("the page is not held up by the script", async () => {
  const tried = [];
  // A busy machine may hold up anything: the script itself is quick if it is so once.
  while (tried.length < 5 && !tried.some((tasks) => tasks.length === 0)) {
    const { page, leave } = await shopper(stage);
    tried.push(await longTasks(page));
    await leave();
  }
  assert.deepEqual(tried.at(-1), [], JSON.stringify(tried));
});

test("what cannot be rendered throws and says why", async () => {
  const { page, leave } = await shopper(stage);
  const told = (code) => page.evaluate(`${code}.then(() => "", (error) => error.code)`);
  for (const place of ["", "#nowhere", "<img src=x onerror=alert(1)>", 5, null]) {
    assert.equal(await told(`button({}, ${JSON.stringify(place)})`), "container_not_found");
  }
  assert.equal(await page.locator("img").count(), 0);
  await leave();
});

test("the playground has the only key there is, a button that opens a window, and its code", async () => {
  const { page, leave } = await stage.payer();
  await page.goto(`${stage.service.baseUrl}/sdks/playground`);
  const key = page.locator("[name=key]");
  assert.equal(await key.inputValue(), stage.service.publishableKey);
  const opened = page.waitForEvent("popup");
  await page.locator("#button button").click();
  await checkout.on(await opened, "choose");
  assert.match(await page.locator("#code").textContent(), /generateButton/);
  assert.equal(await page.locator(".wrong").count(), 0);
  await key.fill("");
  await key.blur();
  await page.locator("#keyless").waitFor();
  assert.equal(await page.locator("#button button").count(), 0);
  assert.equal(await page.locator(".wrong").count(), 0, "nothing is wrong, something is missing");
  await leave();
});
