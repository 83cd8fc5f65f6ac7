// One way to ask the server, with a limit in time, that shows and clears the offline strip.

import { thisLife } from "./life";
import { hideOffline, showOffline, showUnsent } from "./problem";

const TIMEOUT_MS = 30_000;

export interface Answer {
  status: number;
  url: string;
  redirected: boolean;
  retryAfterSeconds: number;
  text: string;
}

type Init = RequestInit & { headers?: Record<string, string> };

/** Nothing when no answer came: then the payer has been told. */
export async function request(url: string, init: Init): Promise<Answer | undefined> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), TIMEOUT_MS);
  try {
    const headers = { ...init.headers, "x-svc-page-life": thisLife() };
    const { signal } = abort;
    const response = await fetch(url, { cache: "no-store", signal, ...init, headers });
    const text = await response.text();
    hideOffline();
    return {
      status: response.status,
      url: response.url,
      redirected: response.redirected,
      retryAfterSeconds: Number(response.headers.get("retry-after")) || 0,
      text,
    };
  } catch {
    if (init.method) showUnsent();
    else showOffline();
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
