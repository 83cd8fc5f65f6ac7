// The playground: every option of the SDK, the button it makes, and the code for it.

import { snippet } from "./snippet";
import type { ButtonConfig, CallbackActions, RenderedButton, SvcInstance } from "./svc/public";

const host = window as unknown as { Svc: (key: string) => SvcInstance };
const form = find<HTMLFormElement>("options");
const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement;
const asked = new URLSearchParams(location.search).get("key");
if (asked) field("key").value = asked;

const key = () => field("key").value.trim();

function find<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

// Also what the SDK does not know: it says so.
function options(): NonNullable<ButtonConfig["options"]> {
  const methods = [...form.querySelectorAll<HTMLInputElement>("[name=methods]:checked")];
  return {
    style: { width: field("width").value, shape: field("shape").value },
    config: { lang: field("lang").value, showAmount: field("showAmount").checked },
    paymentConfig: {
      theme: field("theme").value,
      allowedPaymentMethods: methods.map((box) => box.value),
      showUIOfProcessingInfo: field("showInfo").checked,
      referencePaymentLifeSpan: Number(field("life").value),
    },
  } as NonNullable<ButtonConfig["options"]>;
}

function note(text: string, wrong = false): void {
  const line = document.createElement("li");
  line.textContent = text;
  if (wrong) line.className = "wrong";
  find("log").append(line);
}

// Only a sandbox makes orders for a page; a shop's own backend does it with its secret.
async function createOrder(): Promise<string> {
  const body = new URLSearchParams({ key: key(), amount: field("amount").value });
  const answer = await fetch("/sdks/playground/order", { method: "POST", body });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.message);
  note(`order ${told.data.externalTransactionId}`);
  return told.data.referenceNumber;
}

let button: RenderedButton | undefined;

async function show(): Promise<void> {
  const script = `${location.origin}/sdks/v1/svc.min.js`;
  find("code").textContent = snippet(script, key() || "pk_test_…", options());
  button?.destroy();
  button = undefined;
  find("keyless").hidden = key() !== "";
  if (!key()) return;
  const told = (callback: string, payment: unknown, actions: CallbackActions) => {
    note(`${callback} ${JSON.stringify(payment)}`);
    actions.onPopupWindowClosed(() => note("the window is closed"));
  };
  try {
    button = await host
      .Svc(key())
      .generateButton({
        createOrder,
        onApprove: ({ payment }, actions) => told("onApprove", payment, actions),
        onPending: ({ payment }, actions) => told("onPending", payment, actions),
        onCancel: () => note("onCancel"),
        onError: (error) => note(`onError ${error.code}: ${error.message}`, true),
        options: options(),
      })
      .render("#button");
  } catch (error) {
    note((error as Error).message, true);
  }
}

// Not when a field is left: that is done by the very click on the button, which would be drawn anew under it.
let typing = 0;
form.addEventListener("input", () => {
  clearTimeout(typing);
  typing = window.setTimeout(show, 200);
});
form.addEventListener("submit", (event) => event.preventDefault());
void show();
