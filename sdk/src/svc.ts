// The browser SDK as a classic script: defines the global function `Svc`, once.

import { SvcError } from "./svc/errors";
import { Svc } from "./svc/svc";

// Read now: later it names another script, or none. A module has none, and a script within the page no
// address: the page's own must not be taken for the service's.
const address = (document.currentScript as HTMLScriptElement | null)?.src;

const host = window as unknown as { Svc?: unknown };
// A page that loads the script twice keeps the first; an element with the id "Svc" is not it.
if (typeof host.Svc !== "function") {
  host.Svc = (publishableKey: unknown) => {
    if (address) return Svc(publishableKey, new URL(address).origin);
    const text =
      'load this script from the service by <script src="…"> without type="module", or use the npm module';
    throw new SvcError("invalid_option", text);
  };
}
