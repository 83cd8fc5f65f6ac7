// What the shop's window hears. Only the shop's own origin is ever addressed, and a message is news,
// never a proof: the shop's server decides by its webhook.

import { page } from "./page";

// Long enough for the shop to close the window.
const CLOSE_WAIT_MS = 800;

let posted = "";

/** Once for each state: the same screen shown again is no news. */
export function postState(): void {
  const { screen, version } = page();
  const state = `${screen} ${version}`;
  if (state === posted) return;
  posted = state;
  post("state");
}

/** The link back to the shop: in a window or frame that the shop opened, its shop is already there. */
export function leave(event: Event, href: string): void {
  if (!page().merchantOrigin) return;
  if (window.parent !== window) {
    event.preventDefault();
    post("close");
  } else if (window.opener) {
    event.preventDefault();
    post("close");
    // The shop closes it, if it still listens. It may have been loaded again, and in-app browsers keep the
    // window: then the link does what it says.
    setTimeout(() => location.assign(href), CLOSE_WAIT_MS);
  }
}

function post(type: "state" | "close"): void {
  const { screen, merchantOrigin, nonce, payment } = page();
  if (!merchantOrigin) return;
  const message = { source: "svc-checkout", nonce, type, screen, payment: parse(payment) };
  const windows = new Set<Window>();
  if (window.opener) windows.add(window.opener);
  if (window.parent !== window) windows.add(window.parent);
  for (const target of windows) target.postMessage(message, merchantOrigin);
}

function parse(payment: string): unknown {
  try {
    return JSON.parse(payment);
  } catch {
    return null;
  }
}
