// The browser SDK as an ES module: the address of the service is given, as there is no script element
// to read it from.

import type { SvcInstance } from "./svc/public";
import { Svc as create } from "./svc/svc";

export { SvcError } from "./svc/errors";
export type * from "./svc/public";

export function Svc(publishableKey: string, options: { serviceUrl: string }): SvcInstance {
  return create(publishableKey, new URL(options.serviceUrl).origin);
}
