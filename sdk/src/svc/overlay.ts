// On the merchant's page while the payer is in the other window: where it is, and a way out.

import { cover, make } from "./dom";
import type { Language } from "./options";
import { TEXTS } from "./texts";

const STYLE = `:host{display:grid;place-items:center;background:rgba(0,0,0,.9);color:#fff;font:18px/1.5 system-ui,sans-serif;text-align:center}
div{padding:24px;max-width:22em}
button{display:block;width:100%;min-height:48px;margin-top:12px;border:1px solid #fff;border-radius:24px;background:transparent;color:#fff;font:inherit;cursor:pointer}
button.first{background:#fff;color:#111}
button:focus-visible{outline:3px solid #6cf;outline-offset:2px}`;

export interface Overlay {
  /** The window is gone, and how it ended is not known yet. */
  confirming(): void;
  remove(): void;
}

/** What stands before everything else: it says so, and a key leads out of it. */
export function modal(host: HTMLElement, label: string, leave: () => void): void {
  host.setAttribute("role", "dialog");
  host.setAttribute("aria-modal", "true");
  host.setAttribute("aria-label", label);
  host.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
  });
}

export function showOverlay(lang: Language, focus: () => void, cancel: () => void): Overlay {
  const host = make("div");
  const before = document.activeElement as HTMLElement | null;
  const root = cover(host, STYLE);
  const text = TEXTS[lang];
  const show = make("button", { type: "button", className: "first", textContent: text.show });
  const end = make("button", { type: "button", textContent: text.close });
  show.addEventListener("click", focus);
  end.addEventListener("click", cancel);
  const told = make("p", { textContent: text.inWindow });
  modal(host, text.inWindow, cancel);
  root.append(make("div", {}, told, show, end));
  document.body.append(host);
  // Not at once: the focus belongs to the other window until the payer comes back to this one.
  const back = () => show.focus();
  window.addEventListener("focus", back);
  // What lies behind is not to be reached while this is in front of it.
  host.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    event.preventDefault();
    (root.activeElement === show ? end : show).focus();
  });
  return {
    confirming() {
      // Said once: it is read aloud.
      if (!end.isConnected) return;
      told.textContent = text.confirming;
      told.setAttribute("role", "status");
      show.remove();
      end.remove();
    },
    remove() {
      window.removeEventListener("focus", back);
      host.remove();
      before?.focus();
    },
  };
}
