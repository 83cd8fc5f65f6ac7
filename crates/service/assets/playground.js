"use strict";(()=>{function m(e,t,n){return`<div id="svc-button"></div>
<script src="${e}"><\/script>
<script>
Svc(${JSON.stringify(t)}).generateButton({
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
  options: ${l(n,"  ")},
}).render("#svc-button");
<\/script>`}function l(e,t){return Array.isArray(e)?`[${e.map(r=>l(r,t)).join(", ")}]`:typeof e!="object"||e===null?JSON.stringify(e):`{
${Object.entries(e).map(([r,u])=>`${t}  ${r}: ${l(u,`${t}  `)},
`).join("")}${t}}`}var w=window,d=c("options"),o=e=>d.elements.namedItem(e),p=new URLSearchParams(location.search).get("key");p&&(o("key").value=p);var i=()=>o("key").value.trim();function c(e){return document.getElementById(e)}function f(){let e=[...d.querySelectorAll("[name=methods]:checked")];return{style:{width:o("width").value,shape:o("shape").value},config:{lang:o("lang").value,showAmount:o("showAmount").checked},paymentConfig:{theme:o("theme").value,allowedPaymentMethods:e.map(t=>t.value),showUIOfProcessingInfo:o("showInfo").checked,referencePaymentLifeSpan:Number(o("life").value)}}}function s(e,t=!1){let n=document.createElement("li");n.textContent=e,t&&(n.className="wrong"),c("log").append(n)}async function h(){let e=new URLSearchParams({key:i(),amount:o("amount").value}),t=await fetch("/sdks/playground/order",{method:"POST",body:e}),n=await t.json();if(!t.ok)throw new Error(n.message);return s(`order ${n.data.externalTransactionId}`),n.data.referenceNumber}var a;async function y(){let e=`${location.origin}/sdks/v1/svc.min.js`;if(c("code").textContent=m(e,i()||"pk_test_…",f()),a==null||a.destroy(),a=void 0,c("keyless").hidden=i()!=="",!i())return;let t=(n,r,u)=>{s(`${n} ${JSON.stringify(r)}`),u.onPopupWindowClosed(()=>s("the window is closed"))};try{a=await w.Svc(i()).generateButton({createOrder:h,onApprove:({payment:n},r)=>t("onApprove",n,r),onPending:({payment:n},r)=>t("onPending",n,r),onCancel:()=>s("onCancel"),onError:n=>s(`onError ${n.code}: ${n.message}`,!0),options:f()}).render("#button")}catch(n){s(n.message,!0)}}var g=0;d.addEventListener("input",()=>{clearTimeout(g),g=window.setTimeout(y,200)});d.addEventListener("submit",e=>e.preventDefault());y();})();
