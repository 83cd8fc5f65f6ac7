// What must hold for every screen: it fits, fingers can hit it, and everybody can use it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");
const SHOTS = fileURLToPath(new URL("../../../target/screenshots/", import.meta.url));
const TAP_PX_MIN = 48;
const COLOURS = { resultTypes: ["violations"], runOnly: ["color-contrast", "link-in-text-block"] };
const WITH_TARGETS = { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } };

/** `name` also names the picture that is kept. */
export async function looksRight(page, name) {
  assert.deepEqual(await overflow(page), [], `${name}: nothing is wider than the screen`);
  assert.deepEqual(await smallTargets(page), [], `${name}: fingers hit every target`);
  assert.deepEqual(await barriers(page), [], `${name}: no barriers`);
  await keepPicture(page, name);
}

/**
 * The same for pages that are worked with, where targets may be as small as WCAG 2.2 allows. With
 * `coloursOnly` nothing but the colours changed since it was looked at.
 */
export async function worksFor(page, name, coloursOnly) {
  // Colours on their way from light to dark are nobody's.
  await page.evaluate(() => {
    const changing = document.getAnimations().filter((one) => one instanceof CSSTransition);
    return Promise.allSettled(changing.map((one) => one.finished));
  });
  assert.deepEqual(await overflow(page), [], `${name}: nothing is wider than the screen`);
  const found = await barriers(page, coloursOnly ? COLOURS : WITH_TARGETS);
  assert.deepEqual(found, [], `${name}: no barriers`);
}

export function keepPicture(page, name, options) {
  const path = `${SHOTS}${name}.png`;
  return page.screenshot({ path, animations: "disabled", fullPage: true, ...options });
}

function overflow(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter(
      (one) => one.getBoundingClientRect().right > width,
    );
    return ["page", ...wide.map((one) => one.outerHTML.slice(0, 80))];
  });
}

function smallTargets(page) {
  return page.evaluate((min) => {
    const targets = [...document.querySelectorAll("a, button, summary, input")];
    const small = (one) => {
      const { width, height } = one.getBoundingClientRect();
      return width > 0 && (width < min || height < min);
    };
    return targets.filter(small).map((one) => one.outerHTML.slice(0, 80));
  }, TAP_PX_MIN);
}

async function barriers(page, options = {}) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const violations = await page.evaluate(async (more) => {
    // Without its preloading axe asks for nothing over the network.
    const found = await window.axe.run(document, { preload: false, ...more });
    return found.violations;
  }, options);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}
