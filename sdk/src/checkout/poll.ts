// Asks the server whether the screen is still true: often at first, then less and less.

import { correctCountdown } from "./countdown";
import { page } from "./page";
import { request } from "./request";
import { isLoading, load } from "./swap";

const FAST_MS = 2_000;
const FAST_UNTIL_MS = 30_000;
const STEADY_MS = 5_000;
const STEADY_UNTIL_MS = 120_000;
const SLOW_MS = 15_000;

let timer = 0;
let startedAt = 0;
// An answer to a question of an earlier run must not start a second chain of questions.
let run = 0;
let fetchedVersion = "";
let fetchedAt = 0;

/** Starts over at the fast pace, with a first question after `delayMs`. */
export function startPolling(delayMs = FAST_MS): void {
  pausePolling();
  startedAt = Date.now();
  askAfter(delayMs);
}

export function pausePolling(): void {
  clearTimeout(timer);
  run += 1;
}

function askAfter(delayMs: number): void {
  // An order that has ended has none.
  const { statusUrl } = page();
  if (!statusUrl || document.hidden) return;
  timer = setTimeout(ask, delayMs);
}

// A page that never gets a good session is not asked for again and again.
let renewed = false;

async function ask(): Promise<void> {
  const mine = run;
  const { statusUrl, session } = page();
  const answer = await request(statusUrl, { headers: { "x-svc-session": session } });
  if (mine !== run) return;
  if (answer?.status === 401 && !renewed && !isLoading()) {
    // The session ran out: the page once more brings a new one, and keeps what is typed.
    renewed = true;
    await load(page().pageUrl, { quiet: true });
    if (mine !== run) return;
    // It did not come: the next question tries again.
    renewed = false;
  }
  if (answer?.status === 200) {
    renewed = false;
    await compare(answer.text);
  }
  if (mine !== run) return;
  askAfter(Math.max(pace(), (answer?.retryAfterSeconds ?? 0) * 1000));
}

async function compare(text: string): Promise<void> {
  const { version, left } = parse(text);
  const { version: shown, pageUrl } = page();
  if (left !== undefined) correctCountdown(left);
  if (version === undefined || version === shown || isLoading()) return;
  // A page that stays behind its status is asked for again, but not at every question.
  const again = version === fetchedVersion && Date.now() - fetchedAt < SLOW_MS;
  if (again) return;
  fetchedVersion = version;
  fetchedAt = Date.now();
  await load(pageUrl, { quiet: true });
}

function parse(text: string): { version?: string; left?: number } {
  try {
    const { version, left } = JSON.parse(text);
    return {
      ...(typeof version === "string" && { version }),
      ...(typeof left === "number" && { left }),
    };
  } catch {
    return {};
  }
}

function pace(): number {
  const age = Date.now() - startedAt;
  if (age < FAST_UNTIL_MS) return FAST_MS;
  return age < STEADY_UNTIL_MS ? STEADY_MS : SLOW_MS;
}
