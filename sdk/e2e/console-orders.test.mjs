// The console: home, orders, one order and all that can be done to it, while somebody looks on.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { useConsole } from "./support/console.mjs";

const SEEDED = 70;
const stage = useConsole({ seed: SEEDED });

const pathOf = ({ referenceNumber }) => `/orders/${referenceNumber}`;
const pill = (page) => page.locator("h1 .pill");
const NOT_FOUND = /status of 404/;

/** Whether the first line of each chart is drawn. */
function areDrawn(page) {
  return page.locator(".chart canvas").evaluateAll((all) =>
    all.map((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const seen = new Set();
      for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 255) seen.add(data.slice(at, at + 3).join());
      }
      const colour = getComputedStyle(document.documentElement).getPropertyValue("--chart-1");
      const rgb = colour.match(/[0-9a-f]{2}/gi).map((pair) => Number.parseInt(pair, 16));
      return seen.has(rgb.join());
    }),
  );
}

test("home has figures, a chart of them and a table, for a day, a week and a month", async () => {
  await stage.order();
  const { page, open, leave } = await stage.operator();
  const made = page.locator(".tile", { hasText: "Encomendas criadas" }).locator("b");
  const counts = [];
  for (const [name, period, steps] of [
    ["24 horas", "24h", 24],
    ["7 dias", "7d", 168],
    ["30 dias", "30d", 30],
  ]) {
    await page.getByRole("link", { name, exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get("period") === period);
    // The figures are counted now and then; the page is told.
    await made.filter({ hasText: /[1-9]/ }).waitFor();
    assert.deepEqual(await areDrawn(page), [true, true], `both charts have lines: ${period}`);
    const figures = JSON.parse(await page.locator("#figures").textContent());
    assert.equal(figures.at.length, steps);
    const sum = figures.orders.reduce((all, one) => all + one, 0);
    assert.equal(Number(await made.innerText()), sum);
    await page.getByText("Como tabela").click();
    const cells = await page.locator("details td:nth-child(2)").allInnerTexts();
    assert.equal(
      cells.reduce((all, one) => all + Number(one), 0),
      sum,
      "the table tells the same",
    );
    counts.push(sum);
  }
  assert.ok(counts[0] <= counts[1] && counts[1] < counts[2], `${counts}`);
  await open("?period=nonsense");
  assert.equal(await page.locator(".tabs [aria-current]").innerText(), "24 horas");
  await leave();
});

test("home says what needs somebody, and leads there", async () => {
  const { page, leave } = await stage.operator();
  const [open] = await stage.service.command("exception", "list");
  assert.ok(open, "a month has an exception that waits");
  await page.getByRole("link", { name: "Excepções por resolver" }).click();
  await page.waitForURL(/\/console\/exceptions$/);
  assert.ok((await page.locator("section.card form").count()) > 0);
  await leave();
});

test("orders are filtered by their address, and paged", async () => {
  const { page, open, press, leave } = await stage.operator();
  await open("/orders");
  const rows = page.locator("#live tbody tr");
  assert.equal(await rows.count(), 50);
  const first = await rows.first().innerText();
  await page.getByRole("link", { name: "Anteriores" }).click();
  await page.waitForURL(/before=/);
  assert.ok((await rows.count()) >= SEEDED - 50);
  assert.notEqual(await rows.first().innerText(), first);
  await page.getByRole("link", { name: "Mais recentes" }).click();
  await page.waitForURL(/orders$/);
  assert.equal(await rows.first().innerText(), first);

  await page.getByLabel("Estado").selectOption("CON");
  await page.waitForURL(/status=CON/);
  assert.deepEqual([...new Set(await rows.locator(".pill").allInnerTexts())], ["paga"]);
  await page.getByLabel("Aplicação").selectOption({ label: "Loja Kianda" });
  await page.waitForURL(/application=/);
  await page.getByLabel("De", { exact: true }).fill("2001-01-01");
  await page.getByLabel("Até").fill("2001-01-02");
  await press("Filtrar");
  await page.waitForURL(/from=2001-01-01&to=2001-01-02/);
  await page.getByText("Nada aqui.").waitFor();
  assert.equal(await page.getByLabel("Estado").inputValue(), "CON", "the filters are kept");
  await leave();
});

test("any id leads to what it is of, and an unknown one says so", async () => {
  const order = await stage.order();
  await stage.service.simulate(order, "pending");
  const { page, open, press, leave } = await stage.operator({ allowed: [NOT_FOUND] });
  await open(pathOf(order));
  const event = page.locator("ol.story a", { hasText: "Evento" });
  const eventId = (await event.getAttribute("href")).split("/").pop();
  const row = page.locator("tbody tr", { hasText: "FPSOLPGEXT" });
  const instrument = await row.locator("[data-label=Meio]").innerText();
  const bankReference = instrument.split("/")[1].trim();
  for (const [id, path] of [
    [order.referenceNumber, pathOf(order)],
    [order.externalTransactionId, pathOf(order)],
    [bankReference, pathOf(order)],
    [eventId, `/webhooks/${eventId}`],
  ]) {
    await page.getByRole("searchbox").fill(id);
    await press("Procurar");
    await page.waitForURL(new RegExp(`/console${path}$`));
  }
  await page.getByRole("searchbox").fill("order_nobody");
  await press("Procurar");
  await page.getByText("Nada encontrado com este identificador. order_nobody").waitFor();
  await leave();
});

test("the list is saved as a file that no spreadsheet runs", async () => {
  const order = await stage.order({ name: '=HYPERLINK("x"), 1' });
  const { page, open, leave } = await stage.operator();
  await open("/orders?status=PEN");
  const started = page.waitForEvent("download");
  await page.getByRole("link", { name: "Exportar CSV" }).click();
  const download = await started;
  assert.equal(download.suggestedFilename(), "orders.csv");
  const [head, ...lines] = (await readFile(await download.path(), "utf8")).trim().split("\r\n");
  assert.match(head, /^referenceNumber,externalTransactionId,application,paymentStatus,amount,/);
  assert.ok(lines.every((line) => line.includes(",PEN,")));
  const [line] = lines.filter((one) => one.startsWith(order.referenceNumber));
  assert.ok(line.includes(`,"'=HYPERLINK(""x""), 1",`), line);
  await leave();
});

// What each button of the sandbox does to an order, and what the story says of it.
for (const [button, outcome, status, events] of [
  ["Pagar", "confirm", "paga", ["CON"]],
  ["Recusar", "decline", "pendente", []],
  ["Emitir referência", "pending", "pendente", ["PEN"]],
  ["Desistir", "cancel", "cancelada", ["CAN"]],
  ["Deixar expirar", "expire", "cancelada", ["CAN"]],
]) {
  test(`an order is simulated: ${outcome}`, async () => {
    const order = await stage.order();
    const { page, open, press, told, leave } = await stage.operator();
    await open(pathOf(order));
    await press(button);
    await told("Feito.");
    // A reload does not say it again.
    await page.waitForURL((url) => !url.searchParams.has("done"));
    assert.equal(await pill(page).innerText(), status);
    const story = page.locator("ol.story");
    const line = story.locator("li", { hasText: "Simulado à mão" });
    assert.match(await line.innerText(), new RegExp(`\\n${outcome}\\n.*operator:demo`));
    for (const event of events) {
      // The delivery shows by itself, while the page is open.
      await story.locator("li.event", { hasText: `${event} · Entregue` }).waitFor();
      await story.locator("li.delivered", { hasText: "HTTP 200" }).waitFor();
    }
    const settled = status !== "pendente";
    const buttons = page.locator("form[action$=simulate] button");
    assert.equal(await buttons.count(), settled ? 0 : 5, "what is settled has no way out");
    await leave();
  });
}

test("an order is cancelled, after a question", async () => {
  const order = await stage.order();
  const { page, open, press, told, agree, leave } = await stage.operator();
  await open(pathOf(order));
  page.once("dialog", (dialog) => dialog.dismiss());
  await press("Cancelar encomenda");
  assert.equal(await stage.service.statusOf(order), "PEN", "who says no cancels nothing");
  agree("Cancelar esta encomenda? Não se pode desfazer.");
  await press("Cancelar encomenda");
  await told("Encomenda cancelada.");
  assert.equal(await pill(page).innerText(), "cancelada");
  assert.equal(await stage.service.statusOf(order), "CAN");
  await stage.merchant.told(order, "CAN");
  await leave();
});

test("an open page follows its order, and keeps what is typed and where one is", async () => {
  const order = await stage.order();
  const { page, open, leave } = await stage.operator();
  await open(pathOf(order));
  await page.evaluate(() => {
    window.notLoadedAgain = true;
  });
  const minutes = page.getByLabel("minutos");
  await minutes.fill("12");
  // Twice: what was brought once can be brought again.
  await stage.service.simulate(order, "pending");
  await page.locator("ol.story li.event", { hasText: "PEN · Entregue" }).waitFor();
  await minutes.press("End");
  await minutes.pressSequentially("3");
  const link = page.locator("ol.story li.event a").first();
  await link.focus();
  const focused = await link.getAttribute("href");
  await stage.service.simulate(order, "confirm");
  await page.locator("ol.story li.event", { hasText: "CON · Entregue" }).waitFor();
  assert.equal(await pill(page).innerText(), "paga");
  assert.equal(await page.locator("form[action$=cancel]").count(), 0);
  assert.equal(await minutes.inputValue(), "123");
  const now = await page.evaluate(() => document.activeElement.getAttribute("href"));
  assert.equal(now, focused, "the focus is where it was");
  assert.ok(await page.evaluate(() => window.notLoadedAgain));
  await leave();
});

test("an open list shows a new order, and one without news is left alone", async () => {
  const { page, open, leave } = await stage.operator();
  await open("/orders?status=PEN");
  const order = await stage.order();
  const row = page.locator("tr", { hasText: order.externalTransactionId });
  await row.waitFor();
  await row.getByRole("link").focus();
  const same = await row.elementHandle();
  // News that the list does not show; the second answer proves that the first was dealt with.
  for (const outcome of ["pending", "decline"]) {
    const asked = page.waitForResponse((answer) => answer.url().endsWith("/orders?status=PEN"));
    await stage.service.simulate(order, outcome);
    await asked;
  }
  assert.ok(await same.evaluate((one) => one.isConnected && one.contains(document.activeElement)));
  await leave();
});

test("a page in the background holds no connection, and catches up when it is looked at", async () => {
  const order = await stage.order();
  const { page, open, leave } = await stage.operator();
  const isStream = (request) => request.url().includes("/console/live");
  const closed = page.waitForEvent("requestfailed", isStream);
  await Promise.all([page.waitForRequest(isStream), open(pathOf(order))]);
  const look = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { configurable: true, value });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await look(true);
  await closed;
  await stage.service.simulate(order, "confirm");
  await stage.merchant.told(order, "CON");
  assert.equal(await pill(page).innerText(), "pendente");
  await look(false);
  await pill(page).filter({ hasText: "paga" }).waitFor();
  await leave();
});

test("the clock of the sandbox is moved, and what falls due happens", async () => {
  const order = await stage.order();
  const { page, open, press, told, leave } = await stage.operator();
  await open(pathOf(order));
  await page.getByLabel("minutos").fill(String(26 * 60));
  await press("Avançar");
  // On a slow machine it is told before the journey ends; the page follows.
  await told(/O relógio (avançou, e tudo o que vencia aconteceu|ainda avança)\./);
  assert.ok(page.url().endsWith(pathOf(order)), "one is where one was");
  await pill(page).filter({ hasText: "cancelada" }).waitFor();
  await leave();
});

test("people of a partner see and do what is theirs by their role", async () => {
  const [order, foreign] = [await stage.order(), await foreignReference()];
  const support = await stage.partnerUser("support", { allowed: [NOT_FOUND] });
  await support.open("/orders");
  const names = await support.page.locator("td[data-label=Aplicação]").allInnerTexts();
  assert.deepEqual([...new Set(names)], ["Loja Kianda"]);
  await support.open(`/orders/${foreign}`);
  assert.equal(await support.heading(), "Não encontrado");
  await support.open(pathOf(order));
  support.agree("Cancelar esta encomenda? Não se pode desfazer.");
  await support.press("Cancelar encomenda");
  await support.told("Encomenda cancelada.");
  await support.page.locator("ol.story").getByText("user:support@loja.ao").waitFor();
  await support.leave();

  const other = await stage.order();
  const reader = await stage.partnerUser("reader");
  await reader.open(pathOf(other));
  await reader.page.locator("ol.story").waitFor();
  assert.equal(await reader.page.locator("main form").count(), 0, "a reader only reads");
  await reader.leave();
});

async function foreignReference() {
  const { page, open, leave } = await stage.operator();
  await open("/orders?before=&status=CON");
  const row = page.locator("tbody tr", { hasNotText: "Loja Kianda" }).first();
  const reference = await row.locator("a").innerText();
  await leave();
  return reference;
}
