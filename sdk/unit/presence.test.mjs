// Whether the payer's window is there, whatever the browser thinks of it.
import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./support.mjs";

const { isGone } = await load("src/svc/presence.ts");

const NOW = 1_000_000;
/** So many seconds ago it began to look closed. */
const ago = (seconds) => NOW - seconds * 1_000;
const OPEN = 0;

test("each situation has one answer", () => {
  const cases = [
    ["nothing is known yet", {}, OPEN, false],
    ["closed before there was an order", {}, ago(0), true],
    ["a layer that was closed", { apart: false }, ago(0), true],
    ["it looks closed from the start, and may be cut off", { apart: true }, ago(0), false],
    ["it loads slowly", { apart: true }, ago(15), false],
    ["its page never came", { apart: true }, ago(16), true],
    ["its page was served, its script is slow", { apart: true, seen: true }, ago(120), false],
    ["its page was served, its script never ran", { apart: true, seen: true }, ago(121), true],
    ["cut off, and it lives", { apart: true, seen: true, alive: true }, ago(900), false],
    ["cut off, and left", { apart: true, alive: true, left: true }, ago(1), true],
    ["it talked to us and is closed", { apart: true, talked: true }, ago(0), true],
    ["left without ever having talked", { apart: true, left: true }, OPEN, true],
    ["loaded again", { apart: true, talked: true, left: true }, OPEN, false],
    ["the payer closed it", { apart: true, talked: true, shut: true }, OPEN, true],
  ];
  for (const [what, known, closedSince, gone] of cases) {
    assert.equal(isGone(known, closedSince, NOW), gone, what);
  }
});
