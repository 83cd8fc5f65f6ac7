// The SDK's door: every row of what it refuses, what it warns of, and what it takes.
import assert from "node:assert/strict";
import test from "node:test";
import { load, warnings } from "./support.mjs";

const { parseKey, parseOptions } = await load("src/svc/options.ts");
const createOrder = () => "R";
const parse = (options) => parseOptions({ createOrder, options });
const refuses = (call, part) =>
  assert.throws(call, (error) => error.name === "SvcError" && error.message.includes(part));

test("only a publishable key is a key", () => {
  assert.equal(parseKey("pk_test_0b6f1d3c-8a55"), "pk_test_0b6f1d3c-8a55");
  for (const key of [undefined, null, "", 5, {}, []])
    refuses(() => parseKey(key), "publishable key");
  for (const key of ["pk_prod_x", "pk_test_", " pk_test_x", "pk_test_a b", "x"]) {
    refuses(() => parseKey(key), "pk_test_");
  }
});

test("a secret is named as one", () => {
  for (const key of ["sk_live_1", "svcsec_abc", "whsec_abc", "CLIENT_SECRET"]) {
    refuses(() => parseKey(key), "secret");
  }
});

test("a live key needs https, but for this machine", () => {
  const on = (protocol, isSecureContext, key) => {
    Object.assign(globalThis, { location: { protocol }, isSecureContext });
    return parseKey(key);
  };
  refuses(() => on("http:", false, "pk_live_x"), "https");
  assert.equal(on("http:", false, "pk_test_x"), "pk_test_x");
  assert.equal(on("http:", true, "pk_live_x"), "pk_live_x");
  // A page of https in a frame of one of http.
  assert.equal(on("https:", false, "pk_live_x"), "pk_live_x");
});

test("createOrder and the callbacks are functions", () => {
  for (const config of [undefined, null, 5, "x", [], {}, { createOrder: "x" }]) {
    refuses(() => parseOptions(config), "createOrder");
  }
  for (const name of ["onApprove", "onPending", "onCancel", "onError"]) {
    refuses(() => parseOptions({ createOrder, [name]: "x" }), name);
  }
  refuses(() => parseOptions({ createOrder, options: 5 }), "options");
  refuses(() => parse({ style: [] }), "style");
});

test("what is left out has its default", () => {
  const { width, shape, lang, theme, showAmount, showInfo, methods, life } = parse(undefined);
  const given = { width, shape, lang, theme, showAmount, showInfo, methods, life };
  assert.deepEqual(given, {
    width: "100%",
    shape: "pill",
    lang: "pt",
    theme: "light",
    showAmount: true,
    showInfo: true,
    methods: ["FPSOLPG", "FPMCXEXPRSS", "FPSOLPGEXT"],
    life: 1440,
  });
});

test("an unknown value warns and falls back", () => {
  const told = warnings(() => {
    assert.equal(parse({ config: { lang: "de" } }).lang, "pt");
    assert.equal(parse({ paymentConfig: { theme: "blue" } }).theme, "light");
    assert.equal(parse({ style: { shape: "round" } }).shape, "pill");
  });
  assert.equal(told.length, 3);
});

test("a language is known as browsers name it", () => {
  const read = (lang) => parse({ config: { lang } }).lang;
  assert.deepEqual(["pt-AO", "EN", "en-US", "fr-CA"].map(read), ["pt", "en", "en", "fr"]);
});

test("a wrong type throws", () => {
  refuses(() => parse({ style: { width: 5 } }), "width");
  refuses(() => parse({ config: { lang: 5 } }), "lang");
  refuses(() => parse({ config: { showAmount: "no" } }), "showAmount");
  refuses(() => parse({ paymentConfig: { showUIOfProcessingInfo: 1 } }), "showUIOfProcessingInfo");
});

test("the direct method cannot be disabled", () => {
  const methods = (given) => parse({ paymentConfig: { allowedPaymentMethods: given } }).methods;
  const told = warnings(() => {
    assert.deepEqual(methods([]), ["FPSOLPG"]);
    assert.deepEqual(methods(["FPSOLPGEXT", "FPSOLPGEXT"]), ["FPSOLPG", "FPSOLPGEXT"]);
    assert.deepEqual(methods(["CARD"]), ["FPSOLPG"]);
    assert.deepEqual(methods("FPMCXEXPRSS"), ["FPSOLPG"]);
  });
  assert.equal(told.length, 2);
});

test("the life of a reference is whole minutes within bounds", () => {
  const life = (given) => parse({ paymentConfig: { referencePaymentLifeSpan: given } }).life;
  assert.equal(life(1), 1);
  assert.equal(life(43200), 43200);
  for (const wrong of [0, -1, 1.5, "1440", 1e9, Number.NaN, null, 43201]) {
    refuses(() => life(wrong), "referencePaymentLifeSpan");
  }
});
