// Whether the payer's window is still there, from what the browser, the window itself and the service say.
// Pure: the clock is given.

import type { State } from "./state";

/** A window that looks closed and whose page never came to life is closed; one that was served may be slow. */
const STILLBORN_MS = 15_000;
const SLOW_MS = 120_000;

/** What is known of the window; before the first answer of the service that is little. */
export interface Known extends Partial<State> {
  /** A window of its own has gone to the checkout: the browser may cut it off from us, and then it looks closed. */
  apart?: boolean;
  /** Its page talked to us: it is known to be ours still, and "closed" means closed. */
  talked?: boolean;
  /** The payer closed it, from its page or from this one. */
  shut?: boolean;
}

/** `closedSince`: when it began to look closed, 0 while it does not. */
export function isGone(known: Known, closedSince: number, now: number): boolean {
  // A page that is loaded again is left, and is there again a moment later.
  const { apart, talked, shut, seen, alive, left = false } = known;
  if (shut) return true;
  if (!closedSince) return left && !talked;
  const stillborn = !alive && now - closedSince > (seen ? SLOW_MS : STILLBORN_MS);
  return talked || !apart || left || stillborn;
}
