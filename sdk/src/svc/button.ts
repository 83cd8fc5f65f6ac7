// The button: a real one, styled apart from the page, locked while a flow runs.

import { isolate, make } from "./dom";
import { type Flow, startFlow } from "./flow";
import type { Options } from "./options";
import type { RenderedButton } from "./public";
import { TEXTS } from "./texts";

const RADIUS: Record<string, string> = { pill: "999px", rect: "8px", sharp: "0" };

const STYLE = `:host{display:inline-block;max-width:100%}
button{box-sizing:border-box;width:100%;min-height:48px;padding:0 24px;border:0;background:#0c3b2e;color:#fff;font:600 17px/1.2 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;cursor:pointer;transition:filter .15s}
button:hover{filter:brightness(1.2)}
button:focus-visible{outline:3px solid #3b82f6;outline-offset:2px}
button[aria-busy=true]{opacity:.7;cursor:progress}
button.dark{background:#e8f5ee;color:#0c3b2e}
@media(prefers-color-scheme:dark){button.auto{background:#e8f5ee;color:#0c3b2e}}
@media(prefers-reduced-motion:reduce){button{transition:none}}`;

/** What a container shows: its button, and the payment that was begun with it. */
interface Rendered {
  host?: HTMLElement;
  flow?: Flow | undefined;
  lock(busy: boolean): void;
}

const rendered = new WeakMap<Element, Rendered>();

export function renderButton(
  container: Element,
  service: string,
  key: string,
  options: Options,
): RenderedButton {
  // Rendered again, for instance by a framework: one button, with the new options. A payment that was begun
  // goes on.
  const one: Rendered = rendered.get(container) ?? { lock() {} };
  rendered.set(container, one);
  one.host?.remove();
  const host = make("div");
  host.style.width = options.width;
  const root = isolate(host, STYLE);
  const button = make("button", { type: "button", textContent: TEXTS[options.lang].pay });
  button.lang = options.lang;
  button.className = options.theme;
  button.style.borderRadius = RADIUS[options.shape] ?? "";
  one.host = host;
  one.lock = (busy) => button.setAttribute("aria-busy", String(busy));
  one.lock(!!one.flow);
  button.addEventListener("click", () => {
    if (one.flow) return;
    one.lock(true);
    one.flow = startFlow(service, key, options, () => {
      one.flow = undefined;
      one.lock(false);
    });
  });
  root.append(button);
  container.append(host);
  return {
    destroy() {
      if (one.host !== host || rendered.get(container) !== one) return;
      one.flow?.abandon();
      host.remove();
      rendered.delete(container);
    },
  };
}
