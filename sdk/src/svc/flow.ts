// One click on the button, from the opened window to exactly one callback.

import { SvcError } from "./errors";
import type { Options } from "./options";
import { type Overlay, showOverlay } from "./overlay";
import type { CallbackActions } from "./public";
import { openLayer, openWindow, type Stage } from "./stage";
import { ask } from "./state";
import { asView, type View, verdict } from "./verdict";

const CREATE_TIMEOUT_MS = 30_000;
const POLL_MS = 2_000;
/** How long a closed window with money moving is waited for. */
const MOVING_MS = 120_000;
/** How often the window is looked at, which costs nothing. */
const WATCH_MS = 400;
/** A window that looks closed and whose page never came to life is closed; one that was served may be slow. */
const STILLBORN_MS = 15_000;
const SLOW_MS = 120_000;
/** Questions without an answer after which we say that we do not know. */
const ASKS_MAX = 3;
/** A frame that shows nothing by then is not allowed to: the page itself goes there. */
const FRAME_MS = 8_000;

const CUT_OFF =
  "the service could not be asked how the payment went: it answers only pages of the origin of the order's returnUrl (127.0.0.1 is not localhost), and must be reachable. The order may be paid: ask your backend";

export interface Flow {
  /** Ends it without another callback. */
  abandon(): void;
}

export function startFlow(service: string, key: string, options: Options, ended: () => void): Flow {
  const popup = openWindow(options.lang);
  let stage: Stage | undefined = popup;
  let overlay: Overlay | undefined;
  let reference = "";
  let view: View | undefined;
  // Once the window has talked to us it is known to be ours still, and "closed" means closed.
  let talked = false;
  let seen = false;
  let alive = false;
  let looksClosedSince = 0;
  let saidSo = false;
  let left = false;
  let saidBye = false;
  let gaveUp = false;
  let done = false;
  let closed = false;
  let goneSince = 0;
  let told = false;
  // Questions asked since then: what the window showed last may be older than the payer's last click.
  let asking = false;
  let answered = false;
  let unanswered = 0;
  let timer = 0;
  const nonce = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
  const whenClosed: (() => unknown)[] = [];

  const address = (verb: string) => {
    const query = new URLSearchParams({
      key,
      lang: options.lang,
      theme: options.theme,
      methods: options.methods.join(","),
      life: String(options.life),
      nonce,
    });
    if (!options.showAmount) query.set("amount", "0");
    return `${service}/checkout/${encodeURIComponent(reference)}${verb}?${query}`;
  };

  const actions: CallbackActions = {
    onPopupWindowClosed(fn) {
      if (typeof fn !== "function") return;
      whenClosed.push(fn);
      if (closed) runClosed();
    },
  };

  function runClosed(): void {
    for (const fn of whenClosed.splice(0)) void guarded(fn);
  }

  /** A merchant's mistake is told to the merchant, and breaks nothing of ours. */
  async function guarded(call: () => unknown): Promise<void> {
    try {
      await call();
    } catch (cause) {
      const error = new SvcError("callback_failed", "a callback of the page threw", { cause });
      try {
        await tell(error);
      } catch (again) {
        console.error(error, again);
      }
    }
  }

  /** Nobody who listens: whoever looks at the console. */
  function tell(error: SvcError): unknown {
    return (options.onError ?? console.error)(error);
  }

  function finish(call: () => unknown): void {
    if (done) return;
    done = true;
    overlay?.remove();
    void guarded(call);
    if (!options.showInfo) stage?.close();
    ended();
  }

  function fail(error: SvcError): void {
    finish(() => tell(error));
    stage?.close();
    shut();
  }

  /** The payer's window is closed: nothing more is to be watched. */
  function shut(): void {
    if (closed) return;
    closed = true;
    stop();
    stage?.close();
    runClosed();
  }

  function stop(): void {
    clearTimeout(timer);
    clearInterval(watch);
    window.removeEventListener("message", hear);
  }

  function look(): void {
    const looksClosed = stage?.isClosed() ?? false;
    looksClosedSince = looksClosed ? looksClosedSince || Date.now() : 0;
    const patience = seen ? SLOW_MS : STILLBORN_MS;
    const stillborn = looksClosed && !alive && Date.now() - looksClosedSince > patience;
    if (looksClosed && alive && !talked && !saidSo) {
      saidSo = true;
      console.info("Svc: this page is cut off from its window; the service is asked instead");
    }
    const layer = stage !== popup;
    // A page that is loaded again says that it is left, and is there again a moment later.
    const wentAway = left && (looksClosed || !talked);
    const closedByPayer = looksClosed && (talked || layer || !reference);
    const gone = gaveUp || saidBye || wentAway || stillborn || closedByPayer;
    // Here again: what was found out while it was gone counts no more.
    if (!gone && goneSince) {
      goneSince = 0;
      answered = false;
      unanswered = 0;
    }
    if (gone && !goneSince) {
      goneSince = Date.now();
      if (reference && !asking && !done) {
        clearTimeout(timer);
        void poll();
      }
    }
    if (!done) {
      const waitedEnough = goneSince > 0 && Date.now() - goneSince > MOVING_MS;
      const end = verdict(view, gone, waitedEnough);
      const payment = view?.payment;
      // Without an order, or at its end, there is nothing to ask.
      const sure = !reference || answered || payment?.paymentStatus === "CAN";
      if (end === "approve" && payment) finish(() => options.onApprove?.({ payment }, actions));
      else if (end === "pending" && payment)
        finish(() => options.onPending?.({ payment }, actions));
      else if (end === "cancel" && sure) finish(() => options.onCancel?.());
      else if (end === "cancel" && unanswered >= ASKS_MAX) fail(new SvcError("network", CUT_OFF));
      // The window is gone and money may be moving: whoever looks at this page is told to wait.
      else if (gone && view && !end && !told) {
        told = true;
        overlay ??= showOverlay(
          options.lang,
          () => {},
          () => {},
        );
        overlay.confirming();
      }
    }
    if (done && gone) shut();
  }

  function hear(event: MessageEvent): void {
    const said = event.data as Record<string, unknown> | null;
    if (event.origin !== service || event.source !== stage?.source()) return;
    if (typeof said !== "object" || said === null || said.source !== "svc-checkout") return;
    if (said.nonce !== nonce) return;
    talked = true;
    seen = true;
    view = asView(said.screen, said.payment) ?? view;
    if (said.type === "close") {
      saidBye = true;
      stage?.close();
    }
    look();
  }

  async function poll(): Promise<void> {
    const late = goneSince > 0;
    asking = true;
    const asked = await ask(address("/state"));
    if (closed) return;
    if (late && "state" in asked) answered = true;
    else if (late) unanswered += 1;
    if ("state" in asked) {
      seen ||= asked.state.seen;
      alive ||= asked.state.alive;
      left = asked.state.left;
      view = asked.state.view ?? view;
      look();
    } else if (asked.failure === "not_found" && !done) {
      const more = asked.requestId ? { requestId: asked.requestId } : {};
      fail(
        new SvcError(
          "order_not_found",
          "the service does not know this referenceNumber with this key: createOrder must return data.referenceNumber of an order of the same application",
          more,
        ),
      );
      return;
    } else {
      look();
    }
    // Only now: what the answer brought is no reason to ask beside this.
    asking = false;
    if (!closed) timer = window.setTimeout(poll, goneSince && !late ? 0 : POLL_MS);
  }

  /** A frame may be forbidden by somebody's policy: then this window goes there itself. */
  function leaveIfNothingShows(): void {
    window.setTimeout(() => {
      if (!seen && !closed && !done) location.assign(address(""));
    }, FRAME_MS);
  }

  async function begin(): Promise<void> {
    let late = 0;
    const timeout = new Promise<never>((_, reject) => {
      late = window.setTimeout(() => {
        const text = "createOrder did not answer within 30 seconds";
        reject(new SvcError("create_order_timeout", text));
      }, CREATE_TIMEOUT_MS);
    });
    try {
      const given: unknown = await Promise.race([options.createOrder(), timeout]);
      if (typeof given !== "string" || given.trim() === "") {
        throw new SvcError(
          "invalid_reference",
          "createOrder must return the referenceNumber, a non-empty text",
        );
      }
      reference = given;
    } catch (cause) {
      const text = "createOrder failed; see error.cause";
      return fail(
        cause instanceof SvcError ? cause : new SvcError("create_order_failed", text, { cause }),
      );
    } finally {
      clearTimeout(late);
    }
    // The window was closed before there was anything to see.
    if (done) return;
    window.addEventListener("message", hear);
    if (!stage) {
      stage = openLayer(options.lang);
      leaveIfNothingShows();
    }
    stage.show(address(""));
    timer = window.setTimeout(poll, POLL_MS);
  }

  if (popup) {
    overlay = showOverlay(options.lang, popup.focus, () => {
      gaveUp = true;
      popup.close();
      // With no order yet there is nothing to ask about.
      look();
    });
  }
  const watch = window.setInterval(look, WATCH_MS);
  void begin();

  return {
    abandon() {
      done = true;
      overlay?.remove();
      shut();
    },
  };
}
