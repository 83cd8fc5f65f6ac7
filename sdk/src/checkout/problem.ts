// The strip at the top that says why nothing happens.

let isOffline = false;
let isUnsent = false;

/** Something is looked at again by itself. */
export function showOffline(): void {
  isOffline = true;
  // What the payer has to do stands above what the page does.
  if (!isUnsent) show((strip) => strip.dataset.offline);
}

/** What the payer asked for is not asked for again by itself. */
export function showUnsent(): void {
  isOffline = true;
  isUnsent = true;
  show((strip) => strip.dataset.unsent);
}

/** What could not be sent can be now, by the payer. */
export function showBackOnline(): void {
  if (isUnsent) show((strip) => strip.dataset.back);
  else hideOffline();
}

/** Any answer of the server proves the connection, but does not take back a failure it told of. */
export function hideOffline(): void {
  if (isOffline && !isUnsent) hideProblem();
}

/** `text`: the server's own words for it, if it found any. */
export function showFailure(text: string | undefined): void {
  isOffline = false;
  isUnsent = false;
  show((strip) => text || strip.dataset.failed);
}

export function hideProblem(): void {
  isUnsent = false;
  const strip = document.getElementById("problem");
  if (strip) strip.hidden = true;
}

function show(words: (strip: HTMLElement) => string | undefined): void {
  const strip = document.getElementById("problem");
  if (!strip) return;
  strip.textContent = words(strip) ?? "";
  strip.hidden = false;
}
