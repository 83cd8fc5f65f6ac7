// Options are read once, at the door: a wrong type throws and says the fix, an unknown value warns and
// falls back.

import { SvcError, warn } from "./errors";
import type { ButtonConfig, PaymentMethod } from "./public";

export type Language = "pt" | "en" | "fr";

export interface Options {
  createOrder: ButtonConfig["createOrder"];
  onApprove: ButtonConfig["onApprove"];
  onPending: ButtonConfig["onPending"];
  onCancel: ButtonConfig["onCancel"];
  onError: ButtonConfig["onError"];
  width: string;
  shape: string;
  lang: Language;
  theme: string;
  showAmount: boolean;
  showInfo: boolean;
  methods: PaymentMethod[];
  life: number;
}

const METHODS: PaymentMethod[] = ["FPSOLPG", "FPMCXEXPRSS", "FPSOLPGEXT"];
const LIFE_MINUTES = 1440;
const LIFE_MINUTES_MAX = 43200;

type Members = Record<string, unknown>;

export function parseKey(key: unknown): string {
  if (typeof key !== "string" || key === "") {
    throw new SvcError("invalid_key", 'give your publishable key: Svc("pk_test_…")');
  }
  if (/^(sk_|svcsec_|whsec_)|secret/i.test(key)) {
    throw new SvcError(
      "invalid_key",
      "this is a secret! It must never be in a page: rotate it, and use the publishable key (pk_…)",
    );
  }
  if (!/^pk_(test|live)_[A-Za-z0-9-]{1,64}$/.test(key)) {
    throw new SvcError("invalid_key", "a publishable key begins with pk_test_ or pk_live_");
  }
  // A server that prepares the page has no location. Browsers trust http from this machine.
  const isOpen = typeof location === "object" && location.protocol === "http:" && !isSecureContext;
  if (key.startsWith("pk_live_") && isOpen) {
    throw new SvcError("invalid_key", "a pk_live_ key works on https pages only");
  }
  return key;
}

export function parseOptions(config: unknown): Options {
  if (!isMembers(config)) {
    throw new SvcError("invalid_option", "generateButton needs an object with createOrder");
  }
  if (typeof config.createOrder !== "function") {
    throw new SvcError(
      "invalid_option",
      "createOrder must be a function that returns your backend's referenceNumber",
    );
  }
  for (const name of ["onApprove", "onPending", "onCancel", "onError"]) {
    if (config[name] !== undefined && typeof config[name] !== "function") {
      throw new SvcError("invalid_option", `${name} must be a function`);
    }
  }
  const options = members(config, "options");
  const style = members(options, "style");
  const look = members(options, "config");
  const payment = members(options, "paymentConfig");
  const { createOrder, onApprove, onPending, onCancel, onError } =
    config as unknown as ButtonConfig;
  return {
    createOrder,
    onApprove,
    onPending,
    onCancel,
    onError,
    width: width(style.width),
    shape: choice(style.shape, "shape", ["pill", "rect", "sharp"]),
    lang: choice(language(look.lang), "lang", ["pt", "en", "fr"]) as Language,
    showAmount: flag(look.showAmount, "showAmount"),
    theme: choice(payment.theme, "theme", ["light", "dark", "auto"]),
    showInfo: flag(payment.showUIOfProcessingInfo, "showUIOfProcessingInfo"),
    methods: methods(payment.allowedPaymentMethods),
    life: life(payment.referencePaymentLifeSpan),
  };
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function members(of: Members, name: string): Members {
  const value = of[name];
  if (value === undefined) return {};
  if (!isMembers(value)) throw new SvcError("invalid_option", `${name} must be an object`);
  return value;
}

/** The first value is the default. */
function choice(value: unknown, name: string, values: string[]): string {
  if (value === undefined) return values[0] as string;
  if (typeof value !== "string") throw new SvcError("invalid_option", `${name} must be a text`);
  if (values.includes(value)) return value;
  warn(`${name} "${value}" is not known; it is one of ${values.join(", ")}`);
  return values[0] as string;
}

/** As browsers name it: "en-GB" is English. */
function language(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase().split("-")[0] : value;
}

function flag(value: unknown, name: string): boolean {
  if (value === undefined) return true;
  if (typeof value !== "boolean") {
    throw new SvcError("invalid_option", `${name} must be true or false`);
  }
  return value;
}

/** What the browser takes for a width and nothing else: it ends up in a style. */
function width(value: unknown): string {
  if (value === undefined) return "100%";
  if (typeof value !== "string") throw new SvcError("invalid_option", "width must be a text");
  if (CSS.supports("width", value)) return value;
  warn('width must be a length such as "100%" or "320px"');
  return "100%";
}

/** The direct method cannot be left out (spec 1). */
function methods(value: unknown): PaymentMethod[] {
  if (value === undefined) return METHODS;
  const given = Array.isArray(value) ? value : [];
  if (given !== value || !given.every((code) => METHODS.includes(code))) {
    warn(`allowedPaymentMethods is a list of ${METHODS.join(", ")}; what is not is left out`);
  }
  return METHODS.filter((code) => code === "FPSOLPG" || given.includes(code));
}

function life(value: unknown): number {
  if (value === undefined) return LIFE_MINUTES;
  if (!Number.isInteger(value) || Number(value) < 1 || Number(value) > LIFE_MINUTES_MAX) {
    throw new SvcError(
      "invalid_option",
      `referencePaymentLifeSpan is whole minutes, 1 to ${LIFE_MINUTES_MAX}`,
    );
  }
  return Number(value);
}
