// The shop in the browser: a cart, the payment button, and an order's story while it happens. No price
// and no total from here is believed by the shop's server.

const CART = "cart";
const { key, lang, trouble } = document.body.dataset;

const cart = new Map(Object.entries(JSON.parse(sessionStorage.getItem(CART) || "{}")));
const money = (amount) => `${String(amount).replace(/\B(?=(\d{3})+$)/g, ".")},00\u00a0Kz`;
const byId = (id) => document.getElementById(id);

function showCart() {
  sessionStorage.setItem(CART, JSON.stringify(Object.fromEntries(cart)));
  const list = byId("cart");
  list.textContent = "";
  let total = 0;
  for (const [id, { name, price, quantity }] of cart) {
    total += price * quantity;
    const line = document.createElement("li");
    const less = document.createElement("button");
    less.type = "button";
    less.textContent = "−";
    less.setAttribute("aria-label", `− ${name}`);
    less.addEventListener("click", () => change(id, -1));
    const label = document.createElement("span");
    label.textContent = `${quantity} × ${name}`;
    line.append(less, label);
    list.append(line);
  }
  byId("empty").hidden = cart.size > 0;
  byId("pay").hidden = cart.size === 0;
  byId("total").textContent = money(total);
  byId("total").parentElement.hidden = cart.size === 0;
}

function change(id, by, product) {
  const now = cart.get(id) || { ...product, quantity: 0 };
  now.quantity += by;
  if (now.quantity > 0) cart.set(id, now);
  else cart.delete(id);
  showCart();
}

let order = "";

async function createOrder() {
  byId("problem").textContent = "";
  const items = Array.from(cart, ([id, { quantity }]) => ({ id, quantity }));
  const answer = await fetch("/api/svc/create-order", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ items }),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.message);
  order = told.externalTransactionId;
  return told.referenceNumber;
}

function go(page, values) {
  location.assign(`/${page}?${new URLSearchParams({ lang, ...values })}`);
}

function startShop() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add]");
    if (!button) return;
    const { add, name, price } = button.dataset;
    change(add, 1, { name, price: Number(price) });
  });
  showCart();
  window.Svc(key)
    .generateButton({
      createOrder,
      onApprove: (data, actions) => {
        cart.clear();
        showCart();
        actions.onPopupWindowClosed(() => go("success", { orderId: data.payment.orderId }));
      },
      onPending: (data, actions) => {
        const { paymentReference = "", entity } = data.payment.data;
        cart.clear();
        showCart();
        actions.onPopupWindowClosed(() =>
          go("pending", {
            orderId: data.payment.orderId,
            ref: paymentReference,
            entity: entity ? entity.number : "",
          }),
        );
      },
      onCancel: () => go("cancelled", { orderId: order }),
      onError: (error) => {
        console.error(error);
        byId("problem").textContent = trouble;
      },
      options: { config: { lang } },
    })
    .render("#pay");
}

const STORY_MS = 1000;

/** The page follows the order until there is nothing more to tell. */
async function followStory(main) {
  const { order: id } = main.dataset;
  if (!id) return;
  const answer = await fetch(`/api/shop/order/${encodeURIComponent(id)}`).catch(() => undefined);
  if (answer?.ok) {
    const { status, held, story } = await answer.json();
    main.dataset.status = status;
    const section = byId("story");
    const texts = section.querySelector("template").content;
    const list = section.querySelector("ol");
    list.textContent = "";
    for (const { at_ms: at, what, detail } of story) {
      const line = document.createElement("li");
      line.dataset.what = what;
      const time = document.createElement("time");
      time.textContent = new Date(at).toLocaleTimeString();
      const text = texts.querySelector(`[data-what=${CSS.escape(what)}]`)?.textContent || what;
      line.append(time, ` ${text}${detail ? ` (${detail})` : ""}`);
      list.append(line);
    }
    section.hidden = false;
    const over = status === "CAN" || held || story.some(({ what }) => what === "fulfilled");
    if (over) return;
  }
  setTimeout(followStory, STORY_MS, main);
}

if (byId("pay")) startShop();
else followStory(document.querySelector("main"));
