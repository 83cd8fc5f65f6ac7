// The browser SDK as an ES module: the address of the service is given, as there is no script element
// to read it from.

import { SvcError } from "./svc/errors";
import type { SvcInstance } from "./svc/public";
import { Svc as create } from "./svc/svc";

export { SvcError } from "./svc/errors";
export type * from "./svc/public";

export function Svc(publishableKey: string, options: { serviceUrl: string }): SvcInstance {
  return create(publishableKey, origin(options?.serviceUrl));
}

function origin(serviceUrl: unknown): string {
  try {
    return new URL(String(serviceUrl)).origin;
  } catch {
    const fix = 'give the address of the service: Svc(key, { serviceUrl: "https://…" })';
    throw new SvcError("invalid_option", `serviceUrl is ${serviceUrl}; ${fix}`);
  }
}
