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
const QUANTITY_MAX = 100;
const PAGE = readFileSync(new URL("../page.html", import.meta.url), "utf8")
  .replace("{{SVC_BASE_URL}}", BASE_URL)
  .replace("{{SVC_PUBLISHABLE_KEY}}", env.SVC_PUBLISHABLE_KEY);

const orders = new Map();

/** Kept until a minute before it expires. */
let token = { value: "", until: 0 };
async function accessToken() {
  if (Date.now() < token.until) return token.value;
  const basic = Buffer.from(`${env.SVC_CLIENT_ID}:${env.SVC_CLIENT_SECRET}`).toString("base64");
  const answer = await fetch(`${BASE_URL}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: "client_credentials", validity_period: "3600" }),
  });
  if (!answer.ok) throw new Error(`no token: ${(await answer.json()).message}`);
  const { access_token: value, expires_in: seconds = 3600 } = await answer.json();
  token = { value, until: Date.now() + (seconds - 60) * 1000 };
  return value;
}

async function service(path, init = {}, again = true) {
  const headers = { authorization: `Bearer ${await accessToken()}`, "content-type": "application/json" };
  const answer = await fetch(BASE_URL + path, { ...init, headers });
  if (answer.status === 401 && again) {
    token.until = 0;
    return service(path, init, false);
  }
  const { data, message } = await answer.json();
  if (!answer.ok) throw new Error(message);
  return data;
}

/** Only a pending order moves, only to its end, and so only once. */
function apply({ externalTransactionId, paymentStatus, referenceNumber, amount }) {
  const order = orders.get(externalTransactionId);
  if (!order || !["PEN", "CON", "CAN"].includes(paymentStatus)) {
    console.error(`${externalTransactionId}: ${paymentStatus} is nothing to us`);
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

/** Nothing, if it is not JSON. */
function parse(body) {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

async function createOrder(body) {
  const items = parse(body)?.items;
  const isSold = (id) => typeof id === "string" && Object.hasOwn(PRICES, id);
  const isCount = (number) => Number.isInteger(number) && number >= 1 && number <= QUANTITY_MAX;
  const isItem = (item) => isSold(item?.id) && isCount(item.quantity);
  if (!Array.isArray(items) || items.length === 0 || !items.every(isItem)) {
    return [422, { message: `items is a list of { id, quantity }; a quantity is 1 to ${QUANTITY_MAX}` }];
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
  const data = await service("/svcpartner/createPaymentOrder", {
    method: "POST",
    body: JSON.stringify({
      externalTransactionId,
      clientId: "guest",
      applicationUUID: APPLICATION,
      name: "Compra",
      amount,
      quantity: 1,
      additionalInfo: JSON.stringify(urls),
    }),
  });
  order.referenceNumber = data.referenceNumber;
  return [200, { referenceNumber: data.referenceNumber, externalTransactionId }];
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
  const { event, data } = parse(body) ?? {};
  if (typeof event !== "string") return [422, {}];
  if (event === "payment" && !Number.isInteger(data?.amount)) return [422, {}];
  if (event === "payment") apply(data);
  else console.error(`${event} is no event we know`);
  return [200, { received: true }];
}

async function status(id) {
  const order = orders.get(id);
  if (!order) return [404, { message: "there is no such order" }];
  if (order.status === "PEN" && order.referenceNumber) {
    const query = new URLSearchParams({ externalTransactionId: id, applicationUUID: APPLICATION });
    apply(await service(`/svcpartner/paymentByExternalTransaction?${query}`));
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
  const asked = /^\/api\/svc\/order\/([^/]+)\/status$/.exec(request.url);
  if (request.method === "POST" && request.url === "/api/svc/create-order") return createOrder(body);
  if (request.method === "POST" && request.url === "/api/svc/webhook") return webhook(body, request);
  if (request.method === "GET" && asked) return status(asked[1]);
  if (request.method === "GET" && PAGES.includes(request.url.split("?")[0])) return [200, PAGE];
  return [404, {}];
}

createServer(async (request, response) => {
  const [code, reply] = await route(request).catch((fault) => {
    console.error(fault.message, fault.cause?.message ?? "");
    return [502, { message: "the payment service is away; try again" }];
  });
  const isPage = reply === PAGE;
  const text = isPage ? PAGE : JSON.stringify(reply);
  const type = isPage ? "text/html" : "application/json";
  const headers = { "content-type": type, "content-length": Buffer.byteLength(text) };
  response.writeHead(code, headers).end(text);
}).listen(PORT, "127.0.0.1", () => console.log(`listening on ${PORT}`));
