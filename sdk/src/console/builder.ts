// Builds the code of the SDK's button from a few choices.

export function startBuilder(): void {
  const form = document.querySelector<HTMLFormElement>("#button-builder");
  const code = document.getElementById("button-code");
  if (!form || !code) return;
  const write = () => {
    code.textContent = snippet(form);
  };
  form.addEventListener("input", write);
  form.addEventListener("submit", (event) => event.preventDefault());
  write();
}

function snippet(form: HTMLFormElement): string {
  const value = (name: string) => (form.elements.namedItem(name) as HTMLInputElement).value.trim();
  const methods = [...form.querySelectorAll<HTMLInputElement>("[name=method]:checked")];
  const life = Number.parseInt(value("life"), 10) || 1440;
  const list = methods.map((method) => quoted(method.value)).join(", ");
  const { key = "", sdk = "" } = form.dataset;
  return `<div id="svc-button"></div>
<script src="${new URL(sdk, location.href).href}"></script>
<script>
  Svc(${quoted(key)})
    .generateButton({
      options: {
        style: { width: ${quoted(value("width") || "100%")}, shape: ${quoted(value("shape"))} },
        config: { lang: ${quoted(value("lang"))}, showAmount: true },
        paymentConfig: {
          theme: ${quoted(value("theme"))},
          allowedPaymentMethods: [${list}],
          referencePaymentLifeSpan: ${life},
        },
      },
      createOrder: async () => {
        const answer = await fetch("/api/svc/create-order", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ items: [{ id: "livro-receitas", quantity: 1 }] }),
        });
        return (await answer.json()).referenceNumber;
      },
      onApprove: async ({ payment }, actions) =>
        actions.onPopupWindowClosed(() => location.assign("/success?orderId=" + payment.orderId)),
      onPending: async ({ payment }, actions) =>
        actions.onPopupWindowClosed(() =>
          location.assign("/pending?orderId=" + payment.orderId +
            "&ref=" + payment.data.paymentReference + "&entity=" + payment.data.entity.number)),
      onCancel: async () => location.assign("/cancelled"),
      onError: async (error) => console.error(error.code, error.message),
    })
    .render("#svc-button");
</script>`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
