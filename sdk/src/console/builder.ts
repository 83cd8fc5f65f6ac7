// Builds the code of the SDK's button from a few choices.

import { snippet } from "../snippet";

export function startBuilder(): void {
  const form = document.querySelector<HTMLFormElement>("#button-builder");
  const code = document.getElementById("button-code");
  if (!form || !code) return;
  const write = () => {
    const { key = "", sdk = "" } = form.dataset;
    code.textContent = snippet(new URL(sdk, location.href).href, key, options(form));
  };
  form.addEventListener("input", write);
  form.addEventListener("submit", (event) => event.preventDefault());
  write();
}

function options(form: HTMLFormElement): unknown {
  const value = (name: string) => (form.elements.namedItem(name) as HTMLInputElement).value.trim();
  const methods = [...form.querySelectorAll<HTMLInputElement>("[name=method]:checked")];
  return {
    style: { width: value("width") || "100%", shape: value("shape") },
    config: { lang: value("lang"), showAmount: true },
    paymentConfig: {
      theme: value("theme"),
      allowedPaymentMethods: methods.map((method) => method.value),
      referencePaymentLifeSpan: Number.parseInt(value("life"), 10) || 1440,
    },
  };
}
