// A shop on an origin of its own: pages to come back to, a page that opens or frames the checkout,
// and a receiver of webhooks.

import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";

const TOLD_WITHIN_MS = 15_000;

export async function startMerchant() {
  const webhooks = [];
  const bell = new EventEmitter();
  let broken = "";
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://shop");
    if (pathname === "/webhook") return receive(request, response);
    if (pathname === "/sdk.js") {
      response.setHeader("content-type", "text/javascript; charset=utf-8");
      return response.end(SDK_SCRIPT);
    }
    response.setHeader("content-type", "text/html; charset=utf-8");
    for (const [name, value] of headers(pathname, request)) response.setHeader(name, value);
    // A page whose origin is "null".
    if (pathname === "/nowhere") {
      response.setHeader("content-security-policy", "sandbox allow-forms allow-scripts");
    }
    response.end(PAGES[pathname] ?? page(pathname.slice(1)));
  });

  async function receive(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (broken) {
      response.statusCode = 500;
      return response.end(broken);
    }
    webhooks.push(JSON.parse(body).data);
    response.end("ok");
    bell.emit("webhook");
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  return {
    origin: `http://127.0.0.1:${port}`,
    /** The same server under a name that browsers take for another site. */
    elsewhere: `http://localhost:${port}`,
    /** Resolves once the shop has been told that this order has this status. */
    async told({ externalTransactionId }, status) {
      const isIt = (data) =>
        data.externalTransactionId === externalTransactionId && data.paymentStatus === status;
      const signal = AbortSignal.timeout(TOLD_WITHIN_MS);
      while (!webhooks.some(isIt)) await once(bell, "webhook", { signal });
    },
    /** From now on webhooks are refused with this text; an empty one mends it. */
    breaks(text) {
      broken = text;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** What the shop's server says beside the page. */
function headers(pathname, request) {
  const service = new URL(request.url, "http://shop").searchParams.get("service");
  if (pathname === "/severed") return [["cross-origin-opener-policy", "same-origin"]];
  if (pathname === "/strict") {
    const policy = `default-src 'none'; script-src 'self' ${service}; connect-src ${service}; frame-src ${service}; img-src data:`;
    return [["content-security-policy", policy]];
  }
  return [];
}

const page = (text, script = "") =>
  `<!doctype html><html lang="pt"><title>Loja</title><link rel="icon" href="data:,">
<h1>${text.replace(/[^a-z]/g, "")}</h1>${script}`;

// Keeps every message it hears, whoever sent it, with its origin and whether its child sent it.
const LISTEN = `<script>
const query = new URLSearchParams(location.search);
const heard = [];
let child;
addEventListener("message", (event) => {
  heard.push({ origin: event.origin, mine: event.source === child, ...event.data });
});`;

// A shop with the payment button. What its callbacks are told is kept in `calls`; the order comes from
// the test, by `newOrder`.
const SDK_SCRIPT = `
const query = new URLSearchParams(location.search);
const calls = [];
const closed = [];
const load = () => new Promise((resolve) => {
  const script = document.createElement("script");
  script.src = query.get("service") + "/sdks/v1/svc.min.js";
  script.onload = resolve;
  document.head.append(script);
});
const config = (more) => ({
  createOrder: () => window.newOrder(),
  onApprove: (data, actions) => {
    calls.push(["approve", data.payment]);
    actions.onPopupWindowClosed(() => closed.push("approve"));
  },
  onPending: (data, actions) => {
    calls.push(["pending", data.payment]);
    actions.onPopupWindowClosed(() => closed.push("pending"));
  },
  onCancel: () => calls.push(["cancel"]),
  onError: (error) => calls.push(["error", error.code, error.message, error.requestId]),
  options: JSON.parse(query.get("options") || "{}"),
  ...more,
});
const button = (more, place = "#pay") => Svc(query.get("key")).generateButton(config(more)).render(place);
const ready = load().then(() => button());
`;
const SDK_PAGE = `<!doctype html><html lang="pt"><title>Loja</title><link rel="icon" href="data:,">
<div id="pay"></div><div id="other"></div><script src="/sdk.js"></script>`;

const PAGES = {
  "/sdk": SDK_PAGE,
  "/strict": SDK_PAGE,
  "/severed": SDK_PAGE,
  "/popup": page(
    "shop",
    `<button>Pagar</button>${LISTEN}
document.querySelector("button").onclick = () => {
  child = open(query.get("url"), "svc-checkout", "popup,width=480,height=740");
};
</script>`,
  ),
  "/frame": page(
    "shop",
    `${LISTEN}
const frame = document.createElement("iframe");
frame.width = 480;
frame.height = 740;
frame.src = query.get("url");
document.body.append(frame);
child = frame.contentWindow;
</script>`,
  ),
};
