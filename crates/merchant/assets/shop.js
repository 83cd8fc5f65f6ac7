// The shop in the browser: a cart, the payment button, and an order's page while things happen. No price
// and no total from here is believed by the shop's server.

const CART = "cart";
// What is in an order that is still to be paid; it comes back should the order be cancelled.
const CART_OF = "cart of ";
// The order the cart is being paid with: its id, its reference, and what is in it.
const PAYING = "being paid";
// What the payment window handed over to pay an order with.
const SLIP_OF = "slip of ";
// Of one product in one order, whatever the stock.
// Who buys, for as long as this browser remembers.
const PAYER = "payer";
const MOST = 99;
const { key, lang, trouble, takeOne, soldOut } = document.body.dataset;

const cart = new Map(Object.entries(JSON.parse(sessionStorage.getItem(CART) || "{}")));
const money = (amount) => {
  const grouped = (sign) => String(amount).replace(/\B(?=(\d{3})+$)/g, sign);
  if (lang === "en") return `Kz\u00a0${grouped(",")}`;
  return lang === "fr" ? `${grouped("\u202f")}\u00a0Kz` : `${grouped(".")},00\u00a0Kz`;
};
const byId = (id) => document.getElementById(id);

function showCart() {
  sessionStorage.setItem(CART, JSON.stringify(Object.fromEntries(cart)));
  const list = byId("cart");
  list.textContent = "";
  let total = 0;
  let count = 0;
  for (const [id, { name, price, quantity }] of cart) {
    total += price * quantity;
    count += quantity;
    const line = document.createElement("li");
    const less = document.createElement("button");
    less.type = "button";
    less.textContent = "−";
    less.dataset.less = id;
    less.setAttribute("aria-label", `${takeOne} ${name}`);
    less.addEventListener("click", () => {
      change(id, -1);
      // The list is a new one, and the keyboard goes on where it was.
      (list.querySelector(`[data-less="${id}"]`) || byId("cart-title")).focus();
    });
    const label = document.createElement("span");
    label.textContent = `${quantity} × ${name}`;
    line.append(less, label);
    list.append(line);
  }
  byId("empty").hidden = cart.size > 0;
  byId("pay").hidden = cart.size === 0;
  byId("total").textContent = money(total);
  byId("total").parentElement.hidden = cart.size === 0;
  byId("bar").hidden = cart.size === 0;
  byId("count").textContent = count;
  byId("bar").querySelector("strong").textContent = money(total);
}

function change(id, by, product) {
  const now = { quantity: 0, ...cart.get(id), ...product };
  // What an order of the payer's own has reserved is not free, and stays in the cart.
  if (by < 0 || now.quantity < (now.most ?? MOST)) now.quantity += by;
  if (now.quantity > 0) cart.set(id, now);
  else cart.delete(id);
  showCart();
  const total = byId("total").parentElement.textContent;
  const told = cart.size > 0 ? `${now.quantity} × ${now.name} · ${total}` : byId("empty").textContent;
  byId("told").textContent = told;
}

let order = "";
// What is said when there is no payment.
let problem = trouble;
// From then on it is the button that tells.
let pressed = false;

const paying = () => JSON.parse(sessionStorage.getItem(PAYING) || "null");

/** The order that is being paid, and how it stands; nothing once it has ended unpaid, or nobody knows it. */
async function orderBegun() {
  const begun = paying();
  if (!begun) return undefined;
  const answer = await fetch(`/api/svc/order/${encodeURIComponent(begun.order)}/status`);
  const told = await answer.json();
  if (!answer.ok && answer.status !== 404) throw new Error(told.message);
  if (told.status === "PEN" || told.status === "CON") return { ...begun, status: told.status };
  sessionStorage.removeItem(PAYING);
  return undefined;
}

const sameItems = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Who buys, as far as a shop without accounts knows: this browser. */
function payer() {
  let id = localStorage.getItem(PAYER);
  if (!id) {
    id = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
    localStorage.setItem(PAYER, id);
  }
  return id;
}

/** The same cart is the same order while that can be paid: nobody pays twice because a page was loaded again. */
async function createOrder() {
  pressed = true;
  byId("problem").textContent = "";
  problem = trouble;
  const items = Array.from(cart, ([id, { quantity }]) => ({ id, quantity }));
  items.sort((one, other) => (one.id < other.id ? -1 : 1));
  const begun = await orderBegun();
  if (begun && (begun.status === "CON" || sameItems(begun.items, items))) {
    order = begun.order;
    return begun.reference;
  }
  const answer = await fetch(`/api/svc/create-order?lang=${lang}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ items, clientId: payer() }),
  });
  const told = await answer.json();
  problem = told.error === "sold_out" ? soldOut : trouble;
  if (!answer.ok) throw new Error(told.message);
  const { externalTransactionId, referenceNumber: reference } = told;
  order = externalTransactionId;
  sessionStorage.setItem(PAYING, JSON.stringify({ order, reference, items }));
  return reference;
}

function go(page, values) {
  location.assign(`/${page}?${new URLSearchParams({ lang, ...values })}`);
}

/** The page may have been loaded again while its order is paid in the other window. */
async function leadToPaidOrder() {
  if (pressed || document.hidden) return;
  const begun = await orderBegun();
  if (begun && begun.status === "CON" && !pressed) go("success", { orderId: begun.order });
}

const LOOK_MS = 5000;

function startShop() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add]");
    if (!button) return;
    const { add, name, price, stock } = button.dataset;
    change(add, 1, { name, price: Number(price), most: Math.min(Number(stock), MOST) });
  });
  showCart();
  const look = () => leadToPaidOrder().catch(() => {});
  look();
  setInterval(look, LOOK_MS);
  document.addEventListener("visibilitychange", look);
  if (!window.Svc) {
    byId("no-button").hidden = false;
    return;
  }
  window.Svc(key)
    .generateButton({
      createOrder,
      onApprove: (data, actions) => {
        takeOut(data.payment.orderId);
        showCart();
        actions.onPopupWindowClosed(() => go("success", { orderId: data.payment.orderId }));
      },
      onPending: (data, actions) => {
        const { paymentReference = "", entity, expiresAt = "" } = data.payment.data;
        const slip = { reference: paymentReference, expiresAt };
        sessionStorage.setItem(SLIP_OF + data.payment.orderId, JSON.stringify(slip));
        sessionStorage.removeItem(PAYING);
        sessionStorage.setItem(CART_OF + data.payment.orderId, JSON.stringify([...cart]));
        cart.clear();
        showCart();
        actions.onPopupWindowClosed(() =>
          go("pending", {
            orderId: data.payment.orderId,
            ref: slip.reference,
            entity: entity ? entity.number : "",
            // Without a deadline there is nothing left to pay: it is being confirmed.
            method: expiresAt ? data.payment.method : "",
          }),
        );
      },
      onCancel: () => go("cancelled", { orderId: order }),
      onError: (error) => {
        console.error(error);
        pressed = false;
        // Nobody knows how it went: not to be paid again, but followed.
        if (error.code === "network" && order) return go("pending", { orderId: order });
        byId("problem").textContent = problem;
      },
      options: {
        style: { width: "100%", shape: "pill" },
        config: { lang, showAmount: true },
        paymentConfig: {
          theme: "light",
          allowedPaymentMethods: ["FPSOLPG", "FPMCXEXPRSS", "FPSOLPGEXT"],
          showUIOfProcessingInfo: true,
          referencePaymentLifeSpan: 1440,
        },
      },
    })
    .render("#pay");
}

const POLL_MS = 2000;

/**
 * The page follows the order until there is nothing more to tell. Whenever the shop says that something
 * happened, it fetches itself; while the shop cannot say so, it does that every two seconds.
 */
function followOrder(main) {
  // For those without a script.
  byId("reload").hidden = true;
  let latest = Promise.resolve();
  let timer = 0;
  const stream = new EventSource(`/api/svc/order/${encodeURIComponent(main.dataset.order)}/events`);
  const look = () => {
    // One after the other, so that an older page never replaces a newer one.
    latest = latest.then(() => renew(main)).catch(() => {});
    return latest.then(() => {
      if ("open" in main.dataset) return;
      stream.close();
      clearInterval(timer);
    });
  };
  stream.addEventListener("order", (event) => {
    const shown = document.querySelectorAll("#story li").length;
    if (JSON.parse(event.data).happenings !== shown) look();
  });
  stream.addEventListener("open", () => {
    clearInterval(timer);
    timer = 0;
  });
  stream.addEventListener("error", () => {
    if (timer) return;
    timer = setInterval(look, POLL_MS);
    look();
  });
}

async function renew(main) {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.title = fresh.title;
  for (const part of ["#news", "#story ol"]) {
    const shown = document.querySelector(part);
    shown.textContent = "";
    shown.append(...fresh.querySelector(part).childNodes);
  }
  byId("story").hidden = false;
  showDeadline(main.dataset.order);
  const { open, cancelled, paid } = fresh.querySelector("main").dataset;
  if (open === undefined) delete main.dataset.open;
  if (cancelled !== undefined) reopenCart(main.dataset.order);
  if (paid !== undefined) takeOut(main.dataset.order);
}

const LOCALES = { pt: "pt-PT", en: "en-GB", fr: "fr-FR" };

/** As the payment window said it to this browser; no address says it. */
function showDeadline(order) {
  const slip = JSON.parse(sessionStorage.getItem(SLIP_OF + order) || "null");
  const named = new URLSearchParams(location.search).get("ref");
  const place = document.querySelector("[data-deadline]");
  if (!place || !slip || slip.reference !== named || !slip.expiresAt) return;
  const date = { dateStyle: "long", timeStyle: "short", timeZone: "Africa/Luanda" };
  place.textContent = new Date(slip.expiresAt).toLocaleString(LOCALES[lang], date);
  place.parentElement.hidden = false;
}

/** It is paid, also where no button could tell: what was in it is in the cart no more. */
function takeOut(order) {
  const begun = paying();
  if (!begun || begun.order !== order) return;
  sessionStorage.removeItem(PAYING);
  for (const { id, quantity } of begun.items) {
    const left = cart.has(id) ? cart.get(id).quantity - quantity : 0;
    if (left > 0) cart.get(id).quantity = left;
    else cart.delete(id);
  }
  sessionStorage.setItem(CART, JSON.stringify(Object.fromEntries(cart)));
}

/** Nothing came of the order: what was in it is in the cart again. */
function reopenCart(order) {
  const kept = JSON.parse(sessionStorage.getItem(CART_OF + order) || "[]");
  sessionStorage.removeItem(CART_OF + order);
  for (const [id, product] of kept) if (!cart.has(id)) cart.set(id, product);
  sessionStorage.setItem(CART, JSON.stringify(Object.fromEntries(cart)));
}

const main = document.querySelector("main");
if (byId("pay")) {
  startShop();
} else {
  showDeadline(main.dataset.order);
  if ("paid" in main.dataset) takeOut(main.dataset.order);
  if ("cancelled" in main.dataset) reopenCart(main.dataset.order);
  if ("open" in main.dataset) followOrder(main);
}
