// One click on the button, from the opened window to exactly one callback.

import { callbacksOf } from "./callbacks";
import { SvcError } from "./errors";
import type { Options } from "./options";
import { type Overlay, showOverlay } from "./overlay";
import { isGone, type Known } from "./presence";
import { createReference } from "./reference";
import { openLayer, openWindow, type Stage } from "./stage";
import { ask } from "./state";
import { asView, verdict } from "./verdict";

const POLL_MS = 2_000;
/** How long a closed window with money moving is waited for. */
const MOVING_MS = 120_000;
/** How often the window is looked at, which costs nothing. */
const WATCH_MS = 400;
/** Questions without an answer after which we say that we do not know. */
const ASKS_MAX = 3;
/** A frame that shows nothing by then is not allowed to: the page itself goes there. */
const FRAME_MS = 8_000;

const CUT_OFF =
  "the service could not be asked how the payment went. The order may be paid: ask your backend";
const NOT_FOUND =
  "this key has no such order: createOrder must return data.referenceNumber of an order of its application";

export interface Flow {
  /** Ends it without another callback. */
  abandon(): void;
}

export function startFlow(service: string, key: string, options: Options, ended: () => void): Flow {
  const popup = openWindow(options.lang);
  const callbacks = callbacksOf(options);
  const known: Known = {};
  const nonce = crypto.getRandomValues(new Uint32Array(4)).join("-");
  let stage: Stage | undefined = popup;
  let overlay: Overlay | undefined;
  let reference = "";
  let looksClosedSince = 0;
  let saidSo = false;
  let done = false;
  let closed = false;
  let goneSince = 0;
  // Questions asked since then: what the window showed last may be older than the payer's last click.
  let asking = false;
  let answered = false;
  let unanswered = 0;
  let timer = 0;

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

  function finish(call: () => unknown): void {
    if (done) return;
    done = true;
    overlay?.remove();
    callbacks.call(call);
    if (!options.showInfo) stage?.close();
    ended();
  }

  function fail(error: SvcError): void {
    finish(() => callbacks.tell(error));
    shut();
  }

  /** The payer's window is closed: nothing more is to be watched. */
  function shut(): void {
    if (closed) return;
    closed = true;
    clearTimeout(timer);
    clearInterval(watch);
    window.removeEventListener("message", hear);
    stage?.close();
    callbacks.closed();
  }

  function look(): void {
    const looksClosed = !!stage?.isClosed();
    looksClosedSince = looksClosed ? looksClosedSince || Date.now() : 0;
    if (looksClosed && known.alive && !known.talked && !saidSo) {
      saidSo = true;
      console.info("Svc: this page is cut off from its window and asks the service");
    }
    const gone = isGone(known, looksClosedSince, Date.now());
    if (gone && !goneSince) leftUs();
    if (!gone && goneSince) cameBack();
    if (!done) decide(gone);
    if (done && gone) shut();
  }

  function leftUs(): void {
    goneSince = Date.now();
    if (reference && !asking && !done) {
      clearTimeout(timer);
      void poll();
    }
  }

  /** What was found out while it was gone counts no more. */
  function cameBack(): void {
    goneSince = 0;
    answered = false;
    unanswered = 0;
  }

  function decide(gone: boolean): void {
    const waitedEnough = goneSince > 0 && Date.now() - goneSince > MOVING_MS;
    const { view } = known;
    const end = verdict(view, gone, waitedEnough);
    const payment = view?.payment;
    const { actions } = callbacks;
    // Without an order, or at its end, there is nothing to ask.
    const sure = !reference || answered || payment?.paymentStatus === "CAN";
    if (end === "approve" && payment) finish(() => options.onApprove?.({ payment }, actions));
    else if (!end) {
      if (gone && view) askToWait();
    } else if (!sure && unanswered < ASKS_MAX) return;
    else if (end === "pending" && payment) finish(() => options.onPending?.({ payment }, actions));
    else if (sure) finish(() => options.onCancel?.());
    else fail(new SvcError("network", CUT_OFF));
  }

  /** The window is gone and money may be moving: whoever looks at this page is told to wait. */
  function askToWait(): void {
    const nothing = () => {};
    overlay ||= showOverlay(options.lang, nothing, nothing);
    overlay.confirming();
  }

  function hear(event: MessageEvent): void {
    const said = event.data as Record<string, unknown> | null;
    if (event.origin !== service || event.source !== stage?.source()) return;
    if (said?.source !== "svc-checkout" || said.nonce !== nonce) return;
    const view = asView(said.screen, said.payment);
    if (view) known.view = view;
    known.talked = true;
    if (said.type === "close") {
      known.shut = true;
      stage?.close();
    }
    look();
  }

  async function poll(): Promise<void> {
    const late = goneSince > 0;
    asking = true;
    const asked = await ask(address("/state"));
    if (closed) return;
    if (asked.state) {
      if (late) answered = true;
      Object.assign(known, asked.state);
    } else if (asked.missing && !done) {
      const { requestId } = asked;
      return fail(new SvcError("order_not_found", NOT_FOUND, { requestId }));
    } else if (late) {
      unanswered += 1;
    }
    look();
    // Only now: what the answer brought is no reason to ask beside this.
    asking = false;
    if (!closed) timer = window.setTimeout(poll, goneSince && !late ? 0 : POLL_MS);
  }

  async function begin(): Promise<void> {
    try {
      reference = await createReference(() => options.createOrder());
    } catch (error) {
      return fail(error as SvcError);
    }
    // The window was closed before there was anything to see.
    if (done) return;
    known.apart = !!popup;
    window.addEventListener("message", hear);
    if (!stage) {
      stage = openLayer(options.lang);
      // It may be forbidden by somebody's policy: then this window goes there itself.
      window.setTimeout(() => {
        if (!known.alive && !known.talked && !closed && !done) location.assign(address(""));
      }, FRAME_MS);
    }
    stage.show(address(""));
    timer = window.setTimeout(poll, POLL_MS);
  }

  if (popup) {
    overlay = showOverlay(options.lang, popup.focus, () => {
      known.shut = true;
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
