// The browser SDK as a classic script: defines the global function `Svc`, once.

import { Svc } from "./svc/svc";

// Read now: later it names another script, or none.
const script = document.currentScript as HTMLScriptElement | null;
const origin = script ? new URL(script.src, location.href).origin : location.origin;

const host = window as unknown as { Svc?: unknown };
// A page that loads the script twice keeps the first; an element with the id "Svc" is not it.
if (typeof host.Svc !== "function") {
  host.Svc = (publishableKey: unknown) => Svc(publishableKey, origin);
}
