// Fetches a page of the checkout and puts its <main> in the place of the one shown.

import { page, say, swapped } from "./page";
import { hideProblem, showFailure, showSlow } from "./problem";
import { type Answer, request } from "./request";

interface Options {
  /** Sent as a form when present. */
  fields?: URLSearchParams;
  /** The payer followed a link, so that "back" must lead here again. */
  remember?: boolean;
  /** The payer asked for nothing: nobody is told that it takes long. */
  quiet?: boolean;
}

/** Whoever has waited so long taps again, unless told why nothing happens. */
const SLOW_MS = 2_000;

// A later step of the payer wins over an answer still on its way.
let newest = 0;
let loading = 0;

export function isLoading(): boolean {
  return loading > 0;
}

/** What the payer pressed on this screen is on its way. */
export function isBusy(): boolean {
  return page().main.getAttribute("aria-busy") === "true";
}

export async function load(url: string, options: Options): Promise<void> {
  newest += 1;
  loading += 1;
  const mine = newest;
  setBusy(true, options.fields !== undefined);
  const slow = setTimeout(() => {
    if (mine === newest && !options.quiet) showSlow();
  }, SLOW_MS);
  const answer = await request(url, options.fields ? { method: "POST", body: options.fields } : {});
  clearTimeout(slow);
  loading -= 1;
  if (mine !== newest) return;
  if (!answer || !show(answer)) {
    setBusy(false, false);
    return;
  }
  if (options.remember) history.pushState(null, "", answer.url);
  else if (answer.redirected) history.replaceState(null, "", answer.url);
}

/** False when the answer is no page worth leaving this one for. */
function show(answer: Answer): boolean {
  const next = new DOMParser().parseFromString(answer.text, "text/html");
  const nextMain = next.querySelector("main");
  const isScreen = nextMain?.dataset.screen !== undefined;
  const isPassing = answer.status === 429 || answer.status >= 500;
  if (!nextMain || (isPassing && !isScreen)) {
    showFailure(nextMain?.querySelector(".lead")?.textContent ?? undefined);
    return false;
  }
  hideProblem();
  const { main, screen } = page();
  keepTyping(main, nextMain);
  const isSame = nextMain.dataset.screen === screen;
  const resume = isSame ? keepPlace(main, nextMain) : () => startReading(nextMain);
  main.replaceWith(nextMain);
  document.title = next.title;
  swapped();
  const wrong = nextMain.querySelector<HTMLElement>("[aria-invalid]");
  if (wrong) wrong.focus();
  else resume();
  tell(nextMain);
  return true;
}

let typedPhone = "";

/** A number survives a swap that refreshes its screen, and is there when the payer tries once more. */
function keepTyping(main: HTMLElement, nextMain: HTMLElement): void {
  const typed = main.querySelector<HTMLInputElement>("#phone");
  const field = nextMain.querySelector<HTMLInputElement>("#phone");
  if (typed) typedPhone = typed.value;
  if (field && !field.value) field.value = typedPhone;
}

/** The same screen is renewed under the payer's hands: what was open stays open, the caret stays where it was. */
function keepPlace(main: HTMLElement, nextMain: HTMLElement): () => void {
  const details = nextMain.querySelector("details");
  if (details) details.open = main.querySelector("details")?.open ?? false;
  const at = document.activeElement as HTMLInputElement;
  const same = [...nextMain.querySelectorAll<HTMLInputElement>("a,button,h1,summary,#phone")].find(
    ({ id, textContent }) => id === at.id && textContent === at.textContent,
  );
  const { selectionStart, selectionEnd } = at;
  // What has gone was acted on, as a rule: what is read next begins at the heading.
  const next = same ?? (main.contains(at) ? nextMain.querySelector("h1") : undefined);
  return () => {
    next?.focus({ preventScroll: true });
    if (same?.id) same.setSelectionRange(selectionStart, selectionEnd);
  };
}

function startReading(main: HTMLElement): void {
  window.scrollTo(0, 0);
  main.querySelector("h1")?.focus();
}

/** The focus reads the heading; the live region adds what stands below it. */
function tell(main: HTMLElement): void {
  const below = main.querySelector(".error, .lead") ?? main.querySelector("h1");
  say(below?.textContent?.trim() ?? "");
}

/**
 * Seen at once: on a slow network a tap that changes nothing is tapped again. While a form is on its way no
 * link leads elsewhere. Nothing is disabled in earnest: that would lose the focus.
 */
function setBusy(busy: boolean, isSending: boolean): void {
  const { main } = page();
  main.setAttribute("aria-busy", String(busy));
  for (const one of main.querySelectorAll("form button, a[data-swap]")) {
    one.setAttribute("aria-disabled", String(one.tagName === "A" ? isSending : busy));
  }
}
