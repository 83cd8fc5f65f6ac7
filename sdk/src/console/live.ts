// Fresh parts when there is news, without taking away what somebody is doing.

import htmx from "htmx.org";

const RETRY_MS = 5_000;

export function startLive(): void {
  if (!document.querySelector("#live[hx-get]")) return;
  follow();
  keepPlace();
}

/**
 * One stream, while the page is looked at: browsers allow six connections to a host, and a tab in the
 * background must not hold one of them.
 */
function follow(): void {
  let source: EventSource | undefined;
  const close = () => {
    source?.close();
    source = undefined;
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(`/console/live?seen=${document.body.dataset.news ?? ""}`);
    source.addEventListener("news", refresh);
    source.addEventListener("error", () => {
      // Refused, not cut: the session may have ended, which the refresh finds out.
      if (source?.readyState !== EventSource.CLOSED) return;
      close();
      refresh();
      setTimeout(open, RETRY_MS);
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    open();
    refresh();
  });
  open();
}

function refresh(): void {
  const part = document.getElementById("live");
  if (part) htmx.trigger(part, "news");
}

/** A part that is the same stays; in one that changed the focus and what was opened are found again. */
function keepPlace(): void {
  let shown = document.getElementById("live")?.outerHTML;
  let restore = () => {};
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { detail } = event as CustomEvent<{ serverResponse: string; shouldSwap: boolean }>;
    const fresh = new DOMParser().parseFromString(detail.serverResponse, "text/html");
    const next = fresh.getElementById("live")?.outerHTML;
    detail.shouldSwap = detail.shouldSwap && next !== undefined && next !== shown;
    if (!detail.shouldSwap) return;
    shown = next;
    restore = place();
  });
  document.addEventListener("htmx:afterSwap", () => restore());
}

function place(): () => void {
  const focused = document.activeElement;
  const name = focused?.closest("#live") ? nameOf(focused) : undefined;
  const nth = alike(name).indexOf(focused as Element);
  const opened = [...document.querySelectorAll("#live details")].map((one) =>
    one.hasAttribute("open"),
  );
  return () => {
    const details = document.querySelectorAll("#live details");
    opened.forEach((open, index) => {
      details[index]?.toggleAttribute("open", open);
    });
    // What the browser could keep by itself is left alone: it knows the caret too.
    if (focused?.isConnected) return;
    (alike(name)[nth] as HTMLElement | undefined)?.focus({ preventScroll: true });
  };
}

function alike(name: string | undefined): Element[] {
  const able = document.querySelectorAll("#live :is(a, button, input, select, textarea, summary)");
  return name === undefined ? [] : [...able].filter((one) => nameOf(one) === name);
}

function nameOf(element: Element): string {
  const value = element.matches("button") ? element.getAttribute("value") : "";
  return [
    element.tagName,
    element.getAttribute("href"),
    element.getAttribute("name"),
    value,
  ].join();
}
