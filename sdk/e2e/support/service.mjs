// A real `svc demo` on a free port of its own, with a directory and a clock nobody else uses.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const BINARY =
  process.env.SVC_BIN ?? fileURLToPath(new URL("../../../target/debug/svc", import.meta.url));

const run = promisify(execFile);

/** `seed`: how many orders its last month had. */
export async function startService({ seed } = {}) {
  const data = mkdtempSync(join(tmpdir(), "svc-e2e-"));
  const database = ["--database", `sqlite:${join(data, "svc.db")}`];
  if (seed) await run(BINARY, ["seed", "--orders", String(seed), ...database]);
  const listen = ["--listen", "127.0.0.1:0", "--data", data];
  // Pages whose clocks are put forward by seconds ask as often as those seconds let them.
  const polls = ["--checkout-polls-per-second", "50"];
  const child = spawn(BINARY, ["demo", "--json", ...listen, ...polls]);
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
  });
  const killed = () => child.kill("SIGKILL");
  process.once("exit", killed);
  const ended = new Promise((resolve) => child.once("close", resolve));
  const ready = JSON.parse(await firstLine(child));
  return {
    ...ready,
    ...partner(ready),
    /** Until a browser has refused something on one of its pages. */
    async untilRefused() {
      while (refusedBy(log).length === 0) await once(child.stderr, "data");
    },
    /** A command beside the running service; its answer. */
    async command(...words) {
      const { stdout } = await run(BINARY, [...words, "--json", ...database]);
      return JSON.parse(stdout);
    },
    /** `refused`: what browsers are to have refused on its pages. */
    async stop({ refused = [] } = {}) {
      process.removeListener("exit", killed);
      child.kill("SIGTERM");
      const code = await ended;
      if (code !== 0) throw new Error(`svc ended with ${code}\n${log}`);
      assert.deepEqual(refusedBy(log), refused);
      // ./test searches what is left for secrets.
      if (process.env.SVC_TEST_KEEP) writeFileSync(join(data, "log"), log);
      else rmSync(data, { recursive: true, force: true });
    },
  };
}

/** What browsers refused on our own pages; that foreign ones may not frame them is for the attacks to see. */
function refusedBy(log) {
  // The last piece is a line that has not ended.
  const whole = log.split("\n").slice(0, -1);
  const lines = whole.filter((line) => line.includes("a browser refused something"));
  const directives = lines.map((line) => JSON.parse(line).directive);
  return directives.filter((directive) => directive !== "frame-ancestors");
}

function firstLine(child) {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`svc ended with ${code} before it was ready`)));
  });
}

/** What the merchant's server may ask for. */
function partner({ baseUrl, clientId, clientSecret, applicationUUID }) {
  const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`;
  const send = async (path, init) => {
    const response = await fetch(baseUrl + path, init);
    const answer = await response.json();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  // A new token each time: the clock may have been moved past the end of the last.
  const call = async (path, { headers, ...init } = {}) => {
    const { access_token: token } = await send("/token", {
      method: "POST",
      headers: { authorization: basic },
      body: new URLSearchParams({ grant_type: "client_credentials", validity_period: "3600" }),
    });
    return send(path, { ...init, headers: { ...headers, authorization: `Bearer ${token}` } });
  };
  const post = (path, body) =>
    call(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });

  return {
    async createOrder({ merchant, amount = 15_000, name = "Livro de cozinha" }) {
      const { data } = await post("/svcpartner/createPaymentOrder", {
        externalTransactionId: `order_${crypto.randomUUID()}`,
        clientId: "user-1",
        applicationUUID,
        name,
        amount,
        quantity: 1,
        additionalInfo: JSON.stringify({
          returnUrl: `${merchant.origin}/ok`,
          cancelUrl: `${merchant.origin}/cancelled`,
          webhookUrl: `${merchant.origin}/webhook`,
        }),
      });
      return data;
    },
    async statusOf({ externalTransactionId }) {
      const query = new URLSearchParams({ externalTransactionId, applicationUUID });
      const { data } = await call(`/svcpartner/paymentByExternalTransaction?${query}`);
      return data.paymentStatus;
    },
    /** Moves the sandbox's clock; all that falls due on the way has happened when this returns. */
    async advance(seconds) {
      let { data } = await post("/sandbox/clock", { advanceSeconds: seconds });
      while (!data.arrived) ({ data } = await call("/sandbox/clock"));
    },
    async simulate({ externalTransactionId }, outcome) {
      await post("/sandbox/simulate", { externalTransactionId, applicationUUID, outcome });
    },
  };
}
