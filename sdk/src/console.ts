// The console's script. Every page works without it; it brings fresh parts when there is news, draws the
// charts, and helps developers without their secrets leaving the browser.

import htmx from "htmx.org";
import { startBuilder } from "./console/builder";
import { startCharts } from "./console/charts";
import { startLive } from "./console/live";
import { startSignatureHelper } from "./console/signature";

// Nothing inline and nothing evaluated: the page's policy would refuse both.
htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;
htmx.config.selfRequestsOnly = true;
htmx.config.historyCacheSize = 0;

document.addEventListener("click", (event) => {
  const button = (event.target as Element).closest<HTMLElement>("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy ?? "");
  void navigator.clipboard.writeText(source?.textContent ?? "").then(() => {
    button.textContent = button.dataset.copied ?? "";
  });
});

document.addEventListener("submit", (event) => {
  const pressed = (event as SubmitEvent).submitter?.dataset.confirm;
  const question = pressed ?? (event.target as HTMLElement).dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// Filters apply as soon as they are chosen.
document.addEventListener("change", (event) => {
  const field = event.target as HTMLElement;
  if (field.matches("[data-submit]")) (field as HTMLSelectElement).form?.requestSubmit();
});

// Before anything changes the page: it is compared with what the server sends.
startLive();

// What was done is said once, not again by every reload.
const here = new URL(location.href);
if (here.searchParams.has("done")) {
  here.searchParams.delete("done");
  history.replaceState(null, "", here);
}

// On a phone the menu is wider than the screen. Not by scrollIntoView: with it the first press of the tab
// key would start from there.
const section = document.querySelector<HTMLElement>("nav.sections [aria-current]");
if (section?.parentElement) {
  const { parentElement: menu, offsetLeft, clientWidth } = section;
  menu.scrollLeft = offsetLeft - (menu.clientWidth - clientWidth) / 2;
}

startCharts();
startBuilder();
startSignatureHelper();
