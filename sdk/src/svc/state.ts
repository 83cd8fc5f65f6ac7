// The order's public state, asked of the service: the truth when messages do not come.

import { asView, type View } from "./verdict";

export interface State {
  /** The checkout page of this flow has been shown. */
  seen: boolean;
  /** Its script runs, and will tell when the payer leaves. */
  alive: boolean;
  /** The payer left it, and did not come back. */
  left: boolean;
  view: View | undefined;
}

export type Asked = { state: State } | { failure: "not_found" | "network"; requestId?: string };

/** A network that has stalled says nothing for minutes. */
const ASK_MS = 8_000;

export async function ask(url: string): Promise<Asked> {
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(), ASK_MS);
  try {
    const { signal } = stalled;
    const answer = await fetch(url, { credentials: "omit", cache: "no-store", signal });
    if (answer.status === 404) {
      const requestId = answer.headers.get("x-request-id") ?? undefined;
      return requestId ? { failure: "not_found", requestId } : { failure: "not_found" };
    }
    if (!answer.ok) return { failure: "network" };
    const body = (await answer.json()) as Record<string, unknown>;
    return {
      state: {
        seen: body.seen === true,
        alive: body.alive === true,
        left: body.left === true,
        view: asView(body.screen, body.payment),
      },
    };
  } catch {
    return { failure: "network" };
  } finally {
    clearTimeout(timer);
  }
}
