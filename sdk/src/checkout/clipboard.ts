// Copying and sharing what the payer has to type elsewhere.

import { say } from "./page";

const FEEDBACK_MS = 2_000;

export async function copy(button: HTMLElement): Promise<void> {
  const { copy: text = "", done = "" } = button.dataset;
  const label = button.querySelector("span");
  if (!label || button.classList.contains("done")) return;
  if (!(await toClipboard(text))) {
    // Marked, so that the payer's own copying takes one tap.
    const figure = button.closest("div")?.querySelector(".figure");
    if (figure) getSelection()?.selectAllChildren(figure);
    return;
  }
  const before = label.textContent;
  label.textContent = done;
  button.classList.add("done");
  say(done);
  setTimeout(() => {
    label.textContent = before;
    button.classList.remove("done");
  }, FEEDBACK_MS);
}

export function share(button: HTMLElement): void {
  // A share that the payer dismisses is a rejection, and no fault.
  navigator.share({ text: button.dataset.share ?? "" }).catch(() => {});
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}

/** For plain http, frames without the permission and old web views. */
function copySelection(text: string): boolean {
  const focused = document.activeElement as HTMLElement | null;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "unseen";
  document.body.append(field);
  field.focus({ preventScroll: true });
  field.select();
  // Older telephones of Apple need it said twice.
  field.setSelectionRange(0, text.length);
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus({ preventScroll: true });
  return copied;
}
