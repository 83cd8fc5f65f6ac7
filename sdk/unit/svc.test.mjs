// What merchants load: the module, which is told where the service is, and the script, which knows it.
import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./support.mjs";

const createOrder = () => "R";

test("the module is told where the service is", async () => {
  const { Svc } = await load("src/svc.module.ts");
  for (const options of [undefined, {}, { serviceUrl: "api.example.ao" }]) {
    const refusal = { code: "invalid_option", message: /serviceUrl/ };
    assert.throws(() => Svc("pk_test_0b6f", options), refusal);
  }
});

test("the module gives a button on a server as well, for the page to render", async () => {
  const { Svc } = await load("src/svc.module.ts");
  assert.deepEqual([typeof window, typeof location], ["undefined", "undefined"]);
  for (const key of ["pk_test_0b6f", "pk_live_0b6f"]) {
    const svc = Svc(key, { serviceUrl: "https://api.example.ao" });
    assert.ok(svc.generateButton({ createOrder }));
  }
});

/** The global that the script defines; `currentScript` is how it was loaded. */
async function script(currentScript) {
  Object.assign(globalThis, { window: {}, document: { currentScript } });
  await load("src/svc.ts");
  return globalThis.window.Svc;
}

test("the script takes the service from its own address", async () => {
  const Svc = await script({ src: "https://api.example.ao/sdks/v1/svc.min.js" });
  assert.ok(Svc("pk_test_0b6f").generateButton({ createOrder }));
});

test("a script without an address does not take the page for the service", async () => {
  const asModule = null;
  const withinThePage = { src: "" };
  for (const loaded of [asModule, withinThePage]) {
    const Svc = await script(loaded);
    assert.throws(() => Svc("pk_test_0b6f"), { code: "invalid_option", message: /<script src=/ });
  }
});

test("only what cannot pay twice is called recoverable", async () => {
  const { SvcError } = await load("src/svc/errors.ts");
  for (const [code, recoverable] of Object.entries({
    invalid_key: false,
    invalid_option: false,
    container_not_found: false,
    create_order_failed: true,
    create_order_timeout: true,
    invalid_reference: false,
    order_not_found: false,
    network: false,
    callback_failed: false,
  })) {
    assert.equal(new SvcError(code, "").recoverable, recoverable, code);
  }
});
