// The order's public state, asked of the service: the truth when messages do not come.

import { asView, type View } from "./verdict";

export interface State {
  /** The checkout page of this flow has been shown. */
  seen: boolean;
  /** Its script runs, and will tell when the payer leaves. */
  alive: boolean;
  /** The payer left it, and did not come back. */
  left: boolean;
  /** What it shows, if it was seen. */
  view?: View;
}

/** Nothing of it if there was no answer. */
export interface Asked {
  state?: State;
  /** There is no such order. */
  missing?: boolean;
  /** Of the answer that said so. */
  requestId?: string | undefined;
}

/** A network that has stalled says nothing for minutes. */
const ASK_MS = 8_000;

export async function ask(url: string): Promise<Asked> {
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(), ASK_MS);
  try {
    const { signal } = stalled;
    const answer = await fetch(url, { credentials: "omit", cache: "no-store", signal });
    if (answer.status === 404) {
      return { missing: true, requestId: answer.headers.get("x-request-id") || undefined };
    }
    if (!answer.ok) return {};
    const body = (await answer.json()) as Record<string, unknown>;
    const view = asView(body.screen, body.payment);
    const state = { seen: !!body.seen, alive: !!body.alive, left: !!body.left };
    return { state: view ? { ...state, view } : state };
  } catch {
    return {};
  } finally {
    clearTimeout(timer);
  }
}
