// The strip at the top that says why nothing happens.

let isOffline = false;

/** What is only looked at is looked at again; what the payer asked for is not asked for by itself. */
export function showOffline(isLook: boolean): void {
  isOffline = true;
  show((strip) => (isLook ? strip.dataset.offline : strip.dataset.unsent));
}

/** Any answer of the server proves the connection, but does not take back a failure it told of. */
export function hideOffline(): void {
  if (isOffline) hideProblem();
}

/** `text`: the server's own words for it, if it found any. */
export function showFailure(text: string | undefined): void {
  isOffline = false;
  show((strip) => text || strip.dataset.failed);
}

export function hideProblem(): void {
  const strip = document.getElementById("problem");
  if (strip) strip.hidden = true;
}

function show(words: (strip: HTMLElement) => string | undefined): void {
  const strip = document.getElementById("problem");
  if (!strip) return;
  strip.textContent = words(strip) ?? "";
  strip.hidden = false;
}
