// The order this click pays: the page's backend creates it and tells its referenceNumber.

import { SvcError } from "./errors";

const CREATE_TIMEOUT_MS = 30_000;

/** Whatever goes wrong is an SvcError. */
export async function createReference(createOrder: () => unknown): Promise<string> {
  let late = 0;
  const timeout = new Promise<never>((_, reject) => {
    late = window.setTimeout(() => {
      const text = "createOrder did not answer within 30 seconds";
      reject(new SvcError("create_order_timeout", text));
    }, CREATE_TIMEOUT_MS);
  });
  try {
    const given: unknown = await Promise.race([createOrder(), timeout]);
    if (typeof given === "string" && given.trim() !== "") return given;
    const text = "createOrder must return the referenceNumber, a non-empty text";
    throw new SvcError("invalid_reference", text);
  } catch (cause) {
    const text = "createOrder failed; see error.cause";
    throw cause instanceof SvcError ? cause : new SvcError("create_order_failed", text, { cause });
  } finally {
    clearTimeout(late);
  }
}
