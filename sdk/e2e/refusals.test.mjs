// What the checkout refuses, asked by browsers and by programs. The marks (H1 and so on) are those of
// the table of bad input.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as checkout from "./support/checkout.mjs";
import { startService } from "./support/service.mjs";
import { useStage } from "./support/stage.mjs";

const stage = useStage();

const FORM = "application/x-www-form-urlencoded";

/** The session a page of this order got, with what the shop allows. */
async function sessionOf(order, query) {
  const html = await (await fetch(order.url(query))).text();
  return /data-session="([^"]+)"/.exec(html)[1];
}

/** A form sent by a program: no Origin, no Sec-Fetch-Site, unless given. */
function send(order, verb, fields, headers = {}, query = {}) {
  const url = order.url(query).replace("?", `/${verb}?`);
  const body = String(new URLSearchParams(fields));
  return fetch(url, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": FORM, ...headers },
    body,
  });
}

const push = (session, phone = "900000003") => ({ session, method: "FPMCXEXPRSS", phone });

async function isUntouched(order) {
  const html = await (await fetch(order.url())).text();
  assert.match(html, /data-version="choose-0-"/);
  assert.equal(await stage.service.statusOf(order), "PEN");
}

/** In a page: sends the most ordinary of forms. */
function submitForm([action, value]) {
  const form = Object.assign(document.createElement("form"), { method: "post", action });
  form.append(Object.assign(document.createElement("input"), { name: "session", value }));
  document.body.append(form);
  form.submit();
}

test("H1: an unknown and a malformed reference get the same page", async () => {
  const order = await stage.order();
  const unknown = `${order.referenceNumber.slice(0, -4)}0000`;
  const pages = [];
  for (const reference of [unknown, "x", "%00", "..%2f..%2fetc", "1".repeat(300)]) {
    const answer = await fetch(order.url().replace(order.referenceNumber, reference));
    assert.equal(answer.status, 404, reference);
    assert.match(answer.headers.get("content-type"), /^text\/html/, reference);
    pages.push(await answer.text());
  }
  assert.equal(new Set(pages).size, 1);
  const foreign = await fetch(order.url({ key: `pk_test_${crypto.randomUUID()}` }));
  assert.equal(foreign.status, 404);
  assert.equal(await foreign.text(), pages[0]);
  const live = await fetch(order.url({ key: `pk_live_${stage.service.applicationUUID}` }));
  assert.equal(live.status, 404);
});

test("H5: paying without a session is 401 and starts nothing", async () => {
  const order = await stage.order();
  for (const session of ["", "x", "eyJ.abc", "a".repeat(5_000)]) {
    assert.equal((await send(order, "pay", push(session))).status, 401);
    assert.equal((await send(order, "cancel", { session })).status, 401);
  }
  await isUntouched(order);
});

test("H6: the session of another order is 401", async () => {
  const [order, other] = await Promise.all([stage.order(), stage.order()]);
  const session = await sessionOf(other);
  assert.equal((await send(order, "pay", push(session))).status, 401);
  assert.equal((await send(order, "cancel", { session })).status, 401);
  const status = order.url().replace("?", "/status?");
  const answer = await fetch(status, { headers: { "x-svc-session": session } });
  assert.equal(answer.status, 401);
  await isUntouched(order);
});

test("H7: a method that the shop does not allow is 422, whatever the address says later", async () => {
  const order = await stage.order();
  const session = await sessionOf(order, { methods: "FPSOLPG" });
  const all = { methods: "FPSOLPG,FPMCXEXPRSS,FPSOLPGEXT" };
  assert.equal((await send(order, "pay", push(session), {}, all)).status, 422);
  await isUntouched(order);
});

test("a shop that allows one method offers that and its own wallet only", async () => {
  const { page, leave } = await stage.visit({ query: { methods: "FPSOLPGEXT" } });
  assert.equal(await page.locator(".method").count(), 2);
  assert.equal(await page.getByText("Multicaixa Express").count(), 0);
  await leave();
});

test("H8: a method that does not exist is 422", async () => {
  const order = await stage.order();
  const session = await sessionOf(order);
  for (const method of ["", "FPNONE", "fpsolpg", "FPSOLPG ", "<script>"]) {
    assert.equal((await send(order, "pay", { session, method })).status, 422, method);
  }
  await isUntouched(order);
});

test("H11, H13: a paid order can be neither paid nor cancelled", async () => {
  const order = await stage.order();
  const session = await sessionOf(order);
  await stage.service.simulate(order, "confirm");
  assert.equal((await send(order, "pay", push(session))).status, 409);
  const cancelled = await send(order, "cancel", { session });
  assert.equal(cancelled.status, 409);
  assert.match(await cancelled.text(), /data-screen="paid"/);
  assert.equal(await stage.service.statusOf(order), "CON");
});

test("H12: a cancelled and an expired order cannot be paid", async () => {
  for (const [outcome, screen] of [
    ["cancel", "cancelled"],
    ["expire", "expired"],
  ]) {
    const order = await stage.order();
    const session = await sessionOf(order);
    await stage.service.simulate(order, outcome);
    const answer = await send(order, "pay", push(session));
    assert.equal(answer.status, 409, outcome);
    assert.match(await answer.text(), new RegExp(`data-screen="${screen}"`));
    assert.equal(await stage.service.statusOf(order), "CAN");
  }
});

test("a payer whose page is behind the order sees the order as it is", async () => {
  const order = await stage.order();
  const { page, context, leave } = await stage.payer({ allowed: [/status of 409/] });
  await checkout.withholdNews(context);
  await page.goto(order.url({ view: "phone" }));
  await stage.service.simulate(order, "confirm");
  await checkout.payByPhone(page, "900000000");
  await checkout.on(page, "paid");
  await leave();
});

test("H14: an address cannot cancel or pay", async () => {
  const order = await stage.order();
  const session = await sessionOf(order);
  for (const verb of ["cancel", "pay"]) {
    const url = order.url({ session, method: "FPSOLPG" }).replace("?", `/${verb}?`);
    const answer = await fetch(url);
    assert.equal(answer.status, 405);
    assert.match(answer.headers.get("allow"), /POST/);
  }
  await isUntouched(order);
});

test("H15: what is not a form is 415, also in a page of ours", async () => {
  const { order, page, leave } = await stage.visit({ allowed: [/status of 415/] });
  const session = await sessionOf(order);
  const types = ["text/plain", "application/json", "multipart/form-data; boundary=x", ""];
  for (const type of types) {
    const answer = await send(order, "pay", push(session), { "content-type": type });
    assert.equal(answer.status, 415, type);
  }
  const inPage = await page.evaluate(
    async (url) => {
      const headers = { "content-type": "text/plain" };
      return (await fetch(url, { method: "POST", headers, body: "method=FPSOLPG" })).status;
    },
    order.url().replace("?", "/pay?"),
  );
  assert.equal(inPage, 415);
  await isUntouched(order);
  await leave();
});

test("H16, H17: a program that says it is another site's page is 403", async () => {
  const order = await stage.order();
  const session = await sessionOf(order);
  for (const headers of [
    { origin: "null" },
    { origin: "https://evil.example" },
    { origin: stage.merchant.origin },
    { origin: `${stage.service.baseUrl}.evil.example` },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ]) {
    for (const [verb, fields] of [
      ["pay", push(session)],
      ["cancel", { session }],
    ]) {
      const { status } = await send(order, verb, fields, headers);
      assert.equal(status, 403, `${verb} ${JSON.stringify(headers)}`);
    }
  }
  await isUntouched(order);
});

test("H15–H17: no page of another site can pay or cancel, even with the payer's session", async () => {
  const order = await stage.order();
  const session = await sessionOf(order);
  for (const shop of [stage.merchant.origin, stage.merchant.elsewhere]) {
    const { page, context, leave } = await stage.payer({
      allowed: [/status of 4\d\d/, /CORS policy/, /ERR_FAILED/],
    });
    await page.goto(`${shop}/ok`);
    const statuses = [];
    context.on("response", (response) => {
      if (response.url().startsWith(stage.service.baseUrl)) statuses.push(response.status());
    });
    for (const type of [FORM, "text/plain"]) {
      await page.evaluate(
        async ([url, type, body]) => {
          const headers = { "content-type": type };
          await fetch(url, { method: "POST", mode: "no-cors", headers, body });
        },
        [order.url().replace("?", "/cancel?"), type, String(new URLSearchParams({ session }))],
      );
    }
    // With a header of its own a browser asks first, and is not allowed.
    const readable = await page.evaluate(
      async ([url, session]) => {
        try {
          await fetch(url, { headers: { "x-svc-session": session } });
          return true;
        } catch {
          return false;
        }
      },
      [order.url().replace("?", "/status?"), session],
    );
    assert.equal(readable, false);
    await page.evaluate(submitForm, [order.url().replace("?", "/cancel?"), session]);
    await page.waitForURL(`${stage.service.baseUrl}/**`);
    assert.ok(statuses.length >= 3 && statuses.every((status) => status >= 400), `${statuses}`);
    await leave();
  }
  await isUntouched(order);
});

test("H16: a form of a sandboxed page has no origin and is refused", async () => {
  const order = await stage.order();
  const session = await sessionOf(order);
  const { page, leave } = await stage.payer({ allowed: [/status of 40[34]/] });
  await page.goto(`${stage.merchant.origin}/nowhere`);
  assert.equal(await page.evaluate(() => self.origin), "null");
  await page.evaluate(submitForm, [order.url().replace("?", "/cancel?"), session]);
  await page.waitForURL(`${stage.service.baseUrl}/**`);
  assert.match(await page.locator("body").textContent(), /"code":403/);
  await isUntouched(order);
  await leave();
});

test("H19: what is no mobile number of Angola is 422 and comes back escaped", async () => {
  const order = await stage.order();
  const session = await sessionOf(order);
  for (const phone of [
    "",
    "+244 92345667",
    "+2449234566789",
    "+351923456678",
    "92345678a",
    "٩٢٣٤٥٦٦٧٨",
    "\u202e923456678",
  ]) {
    assert.equal((await send(order, "pay", push(session, phone))).status, 422, phone);
  }
  const nasty = '"><script>alert(1)</script>';
  const html = await (await send(order, "pay", push(session, nasty))).text();
  assert.ok(!html.includes("<script>alert"));
  await isUntouched(order);
});

test("H20: nonsense in the address becomes the default, and runs nowhere", async () => {
  const nasty = '"><script>document.title="owned"</script>';
  const query = {
    lang: nasty,
    theme: '"onload="alert(1)',
    nonce: nasty,
    methods: nasty,
    view: nasty,
  };
  const { page, leave } = await stage.visit({ query });
  await checkout.on(page, "choose");
  assert.equal(await page.locator("html").getAttribute("lang"), "pt-AO");
  assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
  assert.equal(await page.locator("main").getAttribute("data-nonce"), "");
  assert.ok((await page.title()).startsWith("Como quer pagar?"));
  await leave();
});

test("a name that looks like HTML is shown as it is written", async () => {
  const name = '<img src=x onerror="alert(1)"> & "Livro"';
  const { page, leave } = await stage.visit({ order: { name } });
  assert.equal(await page.locator(".label").textContent(), name);
  await leave();
});

test("H22: who asks for news a hundred times at once is told to wait", async () => {
  const order = await stage.order();
  const headers = { "x-svc-session": await sessionOf(order) };
  const url = order.url().replace("?", "/status?");
  const answers = await Promise.all(Array.from({ length: 100 }, () => fetch(url, { headers })));
  const limited = answers.filter(({ status }) => status === 429);
  assert.ok(limited.length >= 10, `${limited.length}`);
  assert.ok(answers.every(({ status }) => status === 200 || status === 429));
  assert.ok(limited.every((answer) => Number(answer.headers.get("retry-after")) >= 1));
});

test("what a browser refuses on a page is told to the operator", async () => {
  const service = await startService();
  const order = await service.createOrder({ merchant: stage.merchant });
  const { page } = await stage.payer();
  await page.goto(checkout.checkoutUrl(service, order));
  await page.evaluate((elsewhere) => {
    document.body.append(Object.assign(new Image(), { src: `${elsewhere}/pixel.png` }));
  }, stage.merchant.origin);
  await service.untilRefused();
  await service.stop({ refused: ["img-src"] });
});

test("every page is protected by the same headers", async () => {
  const order = await stage.order();
  const found = await fetch(order.url());
  const missing = await fetch(order.url().replace(order.referenceNumber, "x"));
  for (const [answer, ancestors] of [
    [found, stage.merchant.origin],
    [missing, "'none'"],
  ]) {
    const policy = answer.headers.get("content-security-policy").split("; ");
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      `frame-ancestors ${ancestors}`,
    ]) {
      assert.ok(policy.includes(rule), rule);
    }
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    assert.equal(answer.headers.get("cache-control"), "no-store");
    assert.equal(answer.headers.get("cross-origin-resource-policy"), "same-origin");
  }
});
