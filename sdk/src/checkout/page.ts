// What the server says of the screen shown: the attributes of <main>, read anew after each swap.

export interface Page {
  main: HTMLElement;
  screen: string;
  version: string;
  statusUrl: string;
  pageUrl: string;
  leftUrl: string;
  session: string;
  merchantOrigin: string;
  nonce: string;
  payment: string;
}

export function page(): Page {
  const main = document.querySelector("main") as HTMLElement;
  const { screen = "", version = "", statusUrl = "", pageUrl = "", session = "" } = main.dataset;
  const { leftUrl = "" } = main.dataset;
  const { merchantOrigin = "", nonce = "", payment = "" } = main.dataset;
  return {
    main,
    screen,
    version,
    statusUrl,
    pageUrl,
    leftUrl,
    session,
    merchantOrigin,
    nonce,
    payment,
  };
}

// Whoever reads on to it later must not take it for news.
const SAID_FOR_MS = 5_000;

let silence = 0;

/** Says a sentence to a screen reader, without moving the reader's place. */
export function say(text: string): void {
  const live = document.getElementById("say");
  if (!live) return;
  live.textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => {
    live.textContent = "";
  }, SAID_FOR_MS);
}

let listener = (): void => {};

export function onSwap(callback: () => void): void {
  listener = callback;
}

export function swapped(): void {
  listener();
}
