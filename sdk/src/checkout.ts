// The hosted checkout's script. Every screen works without it, by links and forms; it only spares the
// payer full page loads, and tells the shop's window what happened.

import { arm, isArmed } from "./checkout/arming";
import { copy, share } from "./checkout/clipboard";
import { startCountdown } from "./checkout/countdown";
import { endLife } from "./checkout/life";
import { leave, postState } from "./checkout/messages";
import { onSwap, page } from "./checkout/page";
import { pausePolling, startPolling } from "./checkout/poll";
import { hideOffline, showOffline } from "./checkout/problem";
import { isBusy, load } from "./checkout/swap";

function screenShown(): void {
  const { main } = page();
  // Buttons that only the script can serve are hidden in the page as sent.
  for (const button of main.querySelectorAll<HTMLElement>("[data-copy], [data-print]")) {
    button.hidden = false;
  }
  for (const link of main.querySelectorAll<HTMLElement>("[data-manual]")) link.hidden = true;
  for (const button of main.querySelectorAll<HTMLElement>("[data-share]")) {
    button.hidden = !("share" in navigator);
  }
  arm();
  startCountdown(askNow);
  startPolling();
  postState();
}

function askNow(): void {
  startPolling(0);
}

/** The payer is back, most often from the app where the payment was approved. */
function returned(): void {
  arm();
  askNow();
}

let following = "";

document.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!isArmed() || isBusy()) return;
  const form = event.target as HTMLFormElement;
  const fields = new URLSearchParams();
  new FormData(form).forEach((value, name) => {
    fields.append(name, String(value));
  });
  void load(form.action, { fields });
});

document.addEventListener("click", (event) => {
  const at = (selector: string) => (event.target as Element).closest<HTMLElement>(selector);
  const swap = at("a[data-swap]") as HTMLAnchorElement | null;
  const back = at("a[data-continue]") as HTMLAnchorElement | null;
  const toCopy = at("[data-copy]");
  const toShare = at("[data-share]");
  // A click that asks for a new tab is the browser's business.
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (swap) {
    event.preventDefault();
    // Tapped again while it is on its way, it would only begin anew.
    if (following === swap.href || swap.getAttribute("aria-disabled") === "true") return;
    following = swap.href;
    void load(swap.href, { remember: true }).finally(() => {
      following = "";
    });
  } else if (back) {
    leave(event, back.href);
  } else if (toCopy) {
    void copy(toCopy);
  } else if (toShare) {
    share(toShare);
  } else if (at("[data-print]")) {
    window.print();
  }
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) pausePolling();
  else returned();
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) returned();
});
// The shop's window cannot always see that this one is closed: the service is told.
window.addEventListener("pagehide", () => {
  const { leftUrl, session } = page();
  const word = new URLSearchParams({ session, page_life: endLife() });
  if (leftUrl) navigator.sendBeacon(leftUrl, word);
});
// In a frame the payer's own first tap brings the focus, and only the shop of this order may frame us.
if (window.parent === window) window.addEventListener("focus", arm);
window.addEventListener("popstate", () => void load(location.href, {}));
window.addEventListener("offline", showOffline);
window.addEventListener("online", () => {
  hideOffline();
  askNow();
});
// What opens below the end of a small screen would seem not to open at all.
document.addEventListener(
  "toggle",
  (event) => {
    const details = event.target as HTMLDetailsElement;
    if (details.open) details.scrollIntoView({ block: "end" });
  },
  true,
);

onSwap(screenShown);
screenShown();
// A page that was loaded again has said that it is left: it is here.
askNow();
