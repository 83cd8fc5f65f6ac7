import type { SvcInstance } from "./svc.js";

/** The global `Svc` once it is loaded from the service; `null` on a server. */
export function loadSvc(
  serviceUrl: string,
): Promise<((publishableKey: string) => SvcInstance) | null>;
