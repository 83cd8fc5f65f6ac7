// Where the payer pays: a window of its own, a layer over the page, or, if neither can be had, this very
// window.

import { cover, make } from "./dom";
import type { Language } from "./options";
import { modal } from "./overlay";
import { TEXTS } from "./texts";

export interface Stage {
  /** The window whose messages count; none before the checkout is there. */
  readonly source: () => Window | null;
  show(url: string): void;
  focus(): void;
  close(): void;
  /** Closed by the payer, as far as this page can see. */
  isClosed(): boolean;
}

// With the moment of the click: no two clicks share a window.
const NAME = "svc-checkout";
const WIDTH = 440;
const HEIGHT = 720;

/** Must run in the click itself: later, browsers take the window for an advertisement. */
export function openWindow(lang: Language): Stage | undefined {
  const left = Math.max(0, window.screenX + (window.outerWidth - WIDTH) / 2);
  const top = Math.max(0, window.screenY + (window.outerHeight - HEIGHT) / 2);
  const features = `popup,width=${WIDTH},height=${HEIGHT},left=${left},top=${top}`;
  let popup: Window | null = null;
  try {
    popup = window.open("", `${NAME}-${Date.now()}`, features);
    // A web view with a single window answers with this very page: writing on it would wipe out the shop.
    if (!popup || popup === window || popup.closed) return undefined;
    popup.document.title = TEXTS[lang].wait;
    // Without it a telephone shows the words as on a wide screen: too small to read.
    popup.document.head.append(make("meta", { name: "viewport", content: "width=device-width" }));
    popup.document.documentElement.lang = lang;
    const body = popup.document.body;
    body.textContent = TEXTS[lang].wait;
    body.style.cssText = "font:18px system-ui,sans-serif;padding:3em 1em;text-align:center";
  } catch {
    // It is there, but not ours to write on: it will be navigated all the same.
    if (!popup) return undefined;
  }
  const opened = popup;
  return {
    source: () => opened,
    show: (url) => {
      opened.location.href = url;
    },
    focus: () => opened.focus(),
    close: () => opened.close(),
    isClosed: () => opened.closed,
  };
}

const LAYER = `:host{padding:0 calc(50% - 220px);background:rgba(0,0,0,.9)}
iframe{width:100%;height:calc(100% - 48px);border:0;background:#fff}
button{display:block;width:48px;height:48px;margin-left:auto;border:0;background:transparent;color:#fff;font:24px system-ui,sans-serif;cursor:pointer}`;

/** A layer over the page with the checkout in a frame. */
export function openLayer(lang: Language): Stage {
  const host = make("div");
  const root = cover(host, LAYER);
  const frame = make("iframe", {
    title: TEXTS[lang].pay,
    allow: "clipboard-write",
    width: "100%",
    height: "100%",
  });
  const shut = make("button", { type: "button", textContent: "×" });
  shut.setAttribute("aria-label", TEXTS[lang].close);
  let closed = false;
  const close = () => {
    closed = true;
    host.remove();
  };
  shut.addEventListener("click", close);
  modal(host, TEXTS[lang].pay, close);
  root.append(shut, frame);
  document.body.append(host);
  shut.focus();
  return {
    source: () => frame.contentWindow,
    show: (url) => {
      frame.src = url;
    },
    focus: () => frame.focus(),
    close,
    isClosed: () => closed,
  };
}
