// Click safety: a page that slid under the pointer must not take the second half of a double click
// as an order to pay.

const ARMED_AFTER_MS = 500;

let shownAt = 0;

/** Starts the wait: the page, or a new screen, has just come before the payer's eyes. */
export function arm(): void {
  shownAt = performance.now();
}

export function isArmed(): boolean {
  return !document.hidden && performance.now() - shownAt >= ARMED_AFTER_MS;
}
