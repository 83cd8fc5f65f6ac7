// The playground: every option of the SDK, the button it makes, and the code for it.

const form = document.getElementById("options");
const log = document.getElementById("log");
const code = document.getElementById("code");
const asked = new URLSearchParams(location.search).get("key");
if (asked) form.elements.key.value = asked;

const key = () => form.elements.key.value.trim();

function options() {
  const field = form.elements;
  const methods = Array.from(field.methods).filter((box) => box.checked);
  return {
    style: { width: field.width.value, shape: field.shape.value },
    config: { lang: field.lang.value, showAmount: field.showAmount.checked },
    paymentConfig: {
      theme: field.theme.value,
      allowedPaymentMethods: methods.map((box) => box.value),
      showUIOfProcessingInfo: field.showInfo.checked,
      referencePaymentLifeSpan: Number(field.life.value),
    },
  };
}

function note(text, wrong) {
  const line = document.createElement("li");
  line.textContent = text;
  if (wrong) line.className = "wrong";
  log.append(line);
}

// Only a sandbox makes orders for a page; a shop's own backend does it with its secret.
async function createOrder() {
  const body = new URLSearchParams({ key: key(), amount: form.elements.amount.value });
  const answer = await fetch("/sdks/playground/order", { method: "POST", body });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.message);
  note(`order ${told.data.externalTransactionId}`);
  return told.data.referenceNumber;
}

function program() {
  const shown = JSON.stringify(options(), null, 2).replace(/\n/g, "\n  ");
  return `<script src="${location.origin}/sdks/v1/svc.min.js"></script>
<div id="pay"></div>
<script>
Svc("${key() || "pk_test_…"}").generateButton({
  createOrder: async () => {
    const answer = await fetch("/api/svc/create-order", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ items: [{ id: "livro-receitas", quantity: 1 }] }),
    });
    return (await answer.json()).referenceNumber;
  },
  onApprove: async (data, actions) => {
    actions.onPopupWindowClosed(() => location.assign("/success?orderId=" + data.payment.orderId));
  },
  onPending: async (data, actions) => {
    // Without a reference the payment is being confirmed: the page must not ask for it again.
    const { paymentReference, entity } = data.payment.data;
    actions.onPopupWindowClosed(() =>
      location.assign("/pending?orderId=" + data.payment.orderId +
        "&ref=" + paymentReference + "&entity=" + entity.number));
  },
  onCancel: async () => location.assign("/cancelled"),
  onError: async (error) => console.error(error.code, error.message),
  options: ${shown},
}).render("#pay");
</script>`;
}

let button;

async function show() {
  code.textContent = program();
  if (button) button.destroy();
  button = undefined;
  document.getElementById("keyless").hidden = key() !== "";
  if (!key()) return;
  try {
    button = await window.Svc(key()).generateButton({
      createOrder,
      onApprove: (data, actions) => {
        note(`onApprove ${JSON.stringify(data.payment)}`);
        actions.onPopupWindowClosed(() => note("the window is closed"));
      },
      onPending: (data, actions) => {
        note(`onPending ${JSON.stringify(data.payment)}`);
        actions.onPopupWindowClosed(() => note("the window is closed"));
      },
      onCancel: () => note("onCancel"),
      onError: (error) => note(`onError ${error.code}: ${error.message}`, true),
      options: options(),
    }).render("#button");
  } catch (error) {
    note(error.message, true);
  }
}

// Not when a field is left: that is done by the very click on the button, which would be drawn anew under it.
let typing = 0;
form.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(show, 200);
});
form.addEventListener("submit", (event) => event.preventDefault());
show();
