// People at the console: how they come in, and what they do there.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { DESK } from "./browser.mjs";
import { useStage } from "./stage.mjs";

export const PASSWORD = "uma palavra-passe comprida";

/** A stage whose payers are people at the console, with the browser's own clock. */
export function useConsole(options) {
  const stage = useStage(options);
  const person = (more) =>
    stage.payer({ viewport: DESK, locale: "pt-AO", ownClock: false, ...more });
  const as = async (enter, more) => {
    const visitor = await person(more);
    await enter(visitor.page);
    return { ...visitor, ...at(visitor.page, stage.service.baseUrl) };
  };
  const welcomes = new Map();
  return Object.assign(stage, {
    /** Somebody who is not signed in. */
    stranger: (more) => as(async () => {}, more),
    /** The demo's operator, an owner. */
    operator: (more) => as((page) => page.goto(stage.service.consoleUrl), more),
    /** Somebody of the demo's partner, who chose a password the first time they were needed. */
    async partnerUser(role, more) {
      const login = `${role}@loja.ao`;
      if (!welcomes.has(login)) welcomes.set(login, welcome(stage, login, role, person));
      const storageState = await welcomes.get(login);
      return as((page) => page.goto(`${stage.service.baseUrl}/console`), { storageState, ...more });
    },
  });
}

async function welcome(stage, login, role, person) {
  const { url } = await create(stage, login, "--partner", stage.service.clientId, "--role", role);
  const { page, context, leave } = await person();
  await page.goto(url);
  await choosePassword(page, PASSWORD);
  const state = await context.storageState();
  await leave();
  return state;
}

/** `svc operator create`: their link. */
export function create(stage, login, ...more) {
  return stage.service.command(
    "operator",
    "create",
    login,
    "--url",
    stage.service.baseUrl,
    ...more,
  );
}

export async function choosePassword(page, password, again = password) {
  await page.getByLabel(/^Nova palavra-passe/).fill(password);
  await page.getByLabel("Repita a palavra-passe").fill(again);
  await page.getByRole("button", { name: "Entrar" }).click();
}

export async function signIn(page, login, password, code = "") {
  await page.getByLabel("Utilizador").fill(login);
  await page.getByLabel("Palavra-passe").fill(password);
  await page.getByLabel(/^Código do telemóvel/).fill(code);
  await page.getByRole("button", { name: "Entrar" }).click();
}

/** What a person does on any page. */
function at(page, baseUrl) {
  return {
    open: (path) => page.goto(`${baseUrl}/console${path}`),
    press: (name) => page.getByRole("button", { name, exact: true }).click(),
    /** The page says that this was done. */
    told: (text) => page.locator(".notice[role=status]", { hasText: text }).waitFor(),
    heading: () => page.locator("h1").innerText(),
    /** Answers yes to the next question, and insists that it is this one. */
    agree: (question) =>
      page.once("dialog", (dialog) => {
        assert.equal(dialog.message(), question);
        return dialog.accept();
      }),
  };
}

/** The six digits that a phone shows for this seed now, or so many steps of 30 s later (RFC 6238). */
export function totp(spelled, later = 0) {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = [...spelled].map((letter) => letters.indexOf(letter).toString(2).padStart(5, "0"));
  const bytes = bits.join("").match(/.{8}/g);
  const seed = Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const mac = createHmac("sha1", seed).update(step).digest();
  const number = mac.readUInt32BE(mac[19] & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}
