// The three endpoints of a merchant's backend and a page with the button, with Node alone: node server.mjs
//
// Orders are kept in memory to keep this short. A real shop has a table with a unique
// external_transaction_id, and does what `apply` does in one transaction.

import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const env = process.env;
// While a secret is replaced, the one before it signs until the switch.
const SECRETS = [env.SVC_WEBHOOK_SECRET ?? ""];
if (env.SVC_WEBHOOK_SECRET_PREVIOUS) SECRETS.push(env.SVC_WEBHOOK_SECRET_PREVIOUS);
if (!SECRETS.every((secret) => /^whsec_.{18,}$/.test(secret))) {
  throw new Error("SVC_WEBHOOK_SECRET is missing or too short to be one: it begins with whsec_");
}
for (const name of ["SVC_BASE_URL", "SVC_PUBLISHABLE_KEY", "SVC_CLIENT_ID", "SVC_CLIENT_SECRET"]) {
  if (!env[name]) throw new Error(`${name} is missing: see .env.example`);
}
const BASE_URL = env.SVC_BASE_URL.replace(/\/$/, "");
const APPLICATION = (env.SVC_PUBLISHABLE_KEY ?? "").replace(/^pk_(test|live)_/, "");
const PORT = Number(env.PORT ?? 3001);
const SHOP = env.SHOP_URL ?? `http://127.0.0.1:${PORT}`;
const PRICES = { "livro-receitas": 15000, "cafe-amboim": 6500 };
const BODY_BYTES_MAX = 65536;

// Where payers begin, and where they come back to.
const PAGES = ["/", "/success", "/pending", "/cancelled"];
const ITEMS_MAX = 50;
const QUANTITY_MAX = 100;
const PAGE = readFileSync(new URL("../page.html", import.meta.url), "utf8")
  .replace("{{SVC_BASE_URL}}", BASE_URL)
  .replace("{{SVC_PUBLISHABLE_KEY}}", env.SVC_PUBLISHABLE_KEY);

const orders = new Map();

async function call(path, init) {
  const answer = await fetch(BASE_URL + path, { ...init, signal: AbortSignal.timeout(12_000) });
  if (answer.ok) return answer.json();
  const { message } = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(`${path}: ${message ?? answer.status}`), { status: answer.status });
}

/** Kept until a minute before it expires. */
let token = { value: "", until: 0 };
async function accessToken() {
  if (Date.now() < token.until) return token.value;
  const basic = Buffer.from(`${env.SVC_CLIENT_ID}:${env.SVC_CLIENT_SECRET}`).toString("base64");
  const { access_token: value, expires_in: seconds = 3600 } = await call("/token", {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: "client_credentials", validity_period: "3600" }),
  });
  token = { value, until: Date.now() + (seconds - 60) * 1000 };
  return value;
}

async function service(path, init = {}, again = true) {
  const headers = { authorization: `Bearer ${await accessToken()}`, "content-type": "application/json" };
  try {
    return (await call(path, { ...init, headers })).data;
  } catch (fault) {
    if (fault.status !== 401 || !again) throw fault;
    token.until = 0;
    return service(path, init, false);
  }
}

/** Whether the service has said no. After anything else it may have done what was asked. */
function isRefusal({ status }) {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

function log(what, fault) {
  console.error(`${what}: ${fault.message}`, fault.cause?.message ?? "");
}

/** Only a pending order moves, only to its end, and so only once. */
function apply({ externalTransactionId, paymentStatus, referenceNumber, amount }) {
  const order = orders.get(externalTransactionId);
  if (!order || !["PEN", "CON", "CAN"].includes(paymentStatus)) {
    console.error(`${externalTransactionId}: ${JSON.stringify(paymentStatus)} is nothing to us`);
    return;
  }
  if (order.status !== "PEN" || paymentStatus === "PEN") return;
  order.status = paymentStatus;
  const expected = order.referenceNumber ?? referenceNumber;
  if (order.amount !== amount || referenceNumber !== expected) {
    // Nothing is sent: a person looks first.
    const reported = `${amount} Kz, ${referenceNumber}`;
    console.error(`${externalTransactionId}: ${reported} reported, ${order.amount} Kz, ${expected} expected`);
    return;
  }
  // Here: queue the fulfilment (CON), or give the stock back (CAN).
}

/** Nothing, if it cannot be read so. */
function tryTo(read, text) {
  try {
    return read(text);
  } catch {
    return undefined;
  }
}

async function createOrder(cart) {
  const items = tryTo(JSON.parse, cart)?.items;
  const isSold = (id) => typeof id === "string" && Object.hasOwn(PRICES, id);
  const isCount = (number) => Number.isInteger(number) && number >= 1 && number <= QUANTITY_MAX;
  const isItem = (item) => isSold(item?.id) && isCount(item.quantity);
  const isCart = Array.isArray(items) && items.length >= 1 && items.length <= ITEMS_MAX;
  if (!isCart || !items.every(isItem)) {
    const told = `items is a list of 1 to ${ITEMS_MAX} { id, quantity }; a quantity is 1 to ${QUANTITY_MAX}`;
    return [422, { message: told }];
  }
  // The total is ours; whatever the page says about it is not read.
  const amount = items.reduce((sum, { id, quantity }) => sum + PRICES[id] * quantity, 0);
  const externalTransactionId = `order_${randomUUID()}`;
  const order = { externalTransactionId, status: "PEN", amount, referenceNumber: null };
  orders.set(externalTransactionId, order);
  const urls = {
    returnUrl: `${SHOP}/success`,
    cancelUrl: `${SHOP}/cancelled`,
    webhookUrl: `${SHOP}/api/svc/webhook`,
  };
  const body = JSON.stringify({
    externalTransactionId,
    clientId: "guest",
    applicationUUID: APPLICATION,
    name: "Compra",
    amount,
    quantity: 1,
    additionalInfo: JSON.stringify(urls),
  });
  try {
    const { referenceNumber } = await service("/svcpartner/createPaymentOrder", { method: "POST", body });
    order.referenceNumber = referenceNumber;
    return [200, { referenceNumber, externalTransactionId }];
  } catch (fault) {
    log(externalTransactionId, fault);
    if (!isRefusal(fault)) return [502, { message: "the payment service cannot be reached; try again" }];
    // Only now is it sure that nobody can pay it: give the stock back.
    order.status = "CAN";
    return [502, { message: "the payment service does not take this order; the log says why" }];
  }
}

function webhook(body, request) {
  // The raw bytes, before any parser; an absent header counts as empty.
  const given = Buffer.from(request.headers["x-svc-content-token"] ?? "");
  const isOurs = (secret) => {
    const expected = Buffer.from(createHmac("sha256", secret).update(body).digest("hex"));
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  if (!SECRETS.some(isOurs)) {
    console.error("a webhook with another signature: is SVC_WEBHOOK_SECRET that of this application?");
    return [401, {}];
  }
  const { event, data } = tryTo(JSON.parse, body) ?? {};
  const isText = (value) => typeof value === "string";
  const isWhole =
    [data?.externalTransactionId, data?.referenceNumber].every(isText) &&
    Number.isSafeInteger(data.amount) &&
    // The status may be anything: one we do not know changes nothing.
    data.paymentStatus !== undefined;
  if (!isText(event) || (event === "payment" && !isWhole)) return [422, {}];
  if (event === "payment") apply(data);
  else console.error(`${event} is no event we know`);
  return [200, { received: true }];
}

async function status(id) {
  const order = orders.get(id);
  if (!order) return [404, { message: "there is no such order" }];
  if (order.status === "PEN" && order.referenceNumber) {
    const query = new URLSearchParams({ externalTransactionId: id, applicationUUID: APPLICATION });
    // What the service cannot tell now, it tells by its webhook.
    const told = await service(`/svcpartner/paymentByExternalTransaction?${query}`).catch((fault) => log(id, fault));
    if (told) apply(told);
  }
  return [200, order];
}

async function route(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) return [413, {}];
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const [path] = request.url.split("?");
  const asked = /^\/api\/svc\/order\/([^/]+)\/status$/.exec(path);
  if (path === "/api/svc/webhook") return request.method === "POST" ? webhook(body, request) : [405, {}];
  if (request.method === "POST" && path === "/api/svc/create-order") return createOrder(body);
  if (request.method === "GET" && asked) return status(tryTo(decodeURIComponent, asked[1]));
  if (request.method === "GET" && PAGES.includes(path)) return [200, PAGE];
  return [404, {}];
}

createServer(async (request, response) => {
  const [code, reply] = await route(request).catch((fault) => {
    // Whatever it was, it is not done: a webhook comes again.
    log(request.url, fault);
    return [503, { message: "not possible at the moment; try again" }];
  });
  const isPage = reply === PAGE;
  const text = isPage ? PAGE : JSON.stringify(reply);
  const type = isPage ? "text/html" : "application/json";
  const headers = { "content-type": type, "content-length": Buffer.byteLength(text) };
  if (code === 405) headers.allow = "POST";
  response.writeHead(code, headers).end(text);
}).listen(PORT, "127.0.0.1", () => console.log(`listening on ${PORT}`));
