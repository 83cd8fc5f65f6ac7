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

export async function load(url: string, options: Options): Promise<void> {
  newest += 1;
  loading += 1;
  const mine = newest;
  setBusy(true);
  const slow = setTimeout(() => {
    if (mine === newest && !options.quiet) showSlow();
  }, SLOW_MS);
  const answer = await request(url, options.fields ? { method: "POST", body: options.fields } : {});
  clearTimeout(slow);
  loading -= 1;
  if (mine !== newest) return;
  if (!answer || !show(answer)) {
    setBusy(false);
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
  main.replaceWith(nextMain);
  document.title = next.title;
  moveReader(nextMain, screen);
  swapped();
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

/** The field to correct, else the heading of a new screen, gets the focus. */
function moveReader(main: HTMLElement, screenBefore: string): void {
  const wrong = main.querySelector<HTMLElement>("[aria-invalid]");
  const heading = main.querySelector<HTMLElement>("h1");
  if (wrong) {
    wrong.focus();
  } else if (main.dataset.screen !== screenBefore) {
    window.scrollTo(0, 0);
    heading?.focus();
  }
  // The focus reads the heading; the live region adds what stands below it.
  say((main.querySelector(".error, .lead") ?? heading)?.textContent?.trim() ?? "");
}

/** Seen at once: on a slow network a tap that changes nothing is tapped again. */
function setBusy(busy: boolean): void {
  const { main } = page();
  main.setAttribute("aria-busy", String(busy));
  for (const button of main.querySelectorAll<HTMLButtonElement>("form button")) {
    button.disabled = busy;
  }
}
