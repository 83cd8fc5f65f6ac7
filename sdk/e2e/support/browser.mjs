// Chromium, and payers who look at pages through it. Each payer notes whatever a page does wrong.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

export const PHONE = { width: 360, height: 740 };
export const DESK = { width: 1280, height: 800 };

const INSTALLED = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const PROGRAM = process.env.CHROMIUM_BIN ?? INSTALLED.find((path) => existsSync(path));
const ARGS = [
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-default-apps",
  "--disable-sync",
  "--no-first-run",
  "--no-default-browser-check",
];
// Generous, for a machine that does something else as well; nothing waits this long when all is well.
const PATIENCE_MS = 15_000;

// Chromium itself dies at its start now and then on a busy machine; that says nothing about our pages.
const LAUNCHES = 3;

export async function launch() {
  for (let launches = 1; ; launches += 1) {
    try {
      return await chromium.launch({ executablePath: PROGRAM, args: ARGS });
    } catch (fault) {
      if (launches === LAUNCHES) throw fault;
      console.error(
        `Chromium did not start (${launches} of ${LAUNCHES} tries): ${String(fault).split("\n")[0]}`,
      );
    }
  }
}

/**
 * Somebody with a browser of their own. With `ownClock` the page's timers can be moved on, see
 * `ready` and `look`; `allowed` are console lines that belong to what the test does.
 */
export async function payer(browser, options = {}) {
  const { viewport = PHONE, script = true, ownClock = script, allowed = [], ...rest } = options;
  const context = await browser.newContext({ viewport, javaScriptEnabled: script, ...rest });
  context.setDefaultTimeout(PATIENCE_MS);
  const faults = [];
  const note = (text) => {
    if (!allowed.some((pattern) => pattern.test(text))) faults.push(text);
  };
  context.on("console", (line) => {
    if (["error", "warning"].includes(line.type())) note(line.text());
  });
  context.on("weberror", (fault) => note(String(fault.error())));
  if (script) await context.addInitScript(reportViolations);
  if (ownClock) await context.clock.install();
  const page = await context.newPage();
  return {
    context,
    page,
    faults,
    /** Leaves, and insists that no page did anything wrong meanwhile. */
    async leave() {
      await context.close();
      assert.deepEqual(faults, []);
    },
  };
}

function reportViolations() {
  document.addEventListener("securitypolicyviolation", (event) => {
    console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI}`);
  });
}
