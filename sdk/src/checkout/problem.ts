// The strip at the top that says why nothing happens.

let isOffline = false;
let isUnsent = false;

/** What the payer asked for is on its way, and takes its time. */
export function showSlow(): void {
  if (!isOffline) show((strip) => strip.dataset.slow, "calm");
}

/** Something is looked at again by itself; what the payer has to do stands above that. */
export function showOffline(): void {
  isOffline = true;
  show((strip) => (isUnsent ? strip.dataset.unsent : strip.dataset.offline));
}

/** What the payer asked for is not asked for again by itself. */
export function showUnsent(): void {
  isUnsent = true;
  showOffline();
}

/** Any answer of the server proves the connection: what could not be sent can be now, by the payer. */
export function hideOffline(): void {
  if (!isOffline) return;
  isOffline = false;
  if (isUnsent) show((strip) => strip.dataset.back);
  else hideProblem();
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

function show(words: (strip: HTMLElement) => string | undefined, tone = ""): void {
  const strip = document.getElementById("problem");
  if (!strip) return;
  strip.dataset.tone = tone;
  const text = words(strip) ?? "";
  // It is read aloud whenever it is written.
  if (strip.textContent !== text) strip.textContent = text;
  strip.hidden = false;
}
