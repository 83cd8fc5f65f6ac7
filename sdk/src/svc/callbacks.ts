// What the page gave us to call. A mistake in it is told to the page, and breaks nothing of ours.

import { SvcError } from "./errors";
import type { Options } from "./options";
import type { CallbackActions } from "./public";

export interface Callbacks {
  call(fn: () => unknown): void;
  tell(error: SvcError): unknown;
  actions: CallbackActions;
  /** The payer's window is closed. */
  closed(): void;
}

export function callbacksOf(options: Options): Callbacks {
  const whenClosed: (() => unknown)[] = [];
  let isClosed = false;

  async function call(fn: () => unknown): Promise<void> {
    try {
      await fn();
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

  function closed(): void {
    isClosed = true;
    for (const fn of whenClosed.splice(0)) void call(fn);
  }

  const actions: CallbackActions = {
    onPopupWindowClosed(fn) {
      if (typeof fn !== "function") return;
      whenClosed.push(fn);
      if (isClosed) closed();
    },
  };
  return { call, tell, actions, closed };
}
