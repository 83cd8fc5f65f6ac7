// The code a merchant's page needs for the button, as a person would write it.

export function snippet(script: string, key: string, options: unknown): string {
  return `<div id="svc-button"></div>
<script src="${script}"></script>
<script>
Svc(${JSON.stringify(key)}).generateButton({
  createOrder: async () => {
    const answer = await fetch("/api/svc/create-order", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ items: [{ id: "livro-receitas", quantity: 1 }] }),
    });
    if (!answer.ok) throw new Error("create-order answered " + answer.status);
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
  options: ${written(options, "  ")},
}).render("#svc-button");
</script>`;
}

function written(value: unknown, indent: string): string {
  if (Array.isArray(value)) return `[${value.map((one) => written(one, indent)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${indent}  ${name}: ${written(member, `${indent}  `)},\n`,
  );
  return `{\n${members.join("")}${indent}}`;
}
