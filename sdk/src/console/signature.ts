// Checks a signature in the browser: the secret is never sent anywhere.

type Finding = "right" | "client" | "prefix" | "upper" | "newline" | "reencoded" | "wrong";

export function startSignatureHelper(): void {
  const form = document.querySelector<HTMLFormElement>("#signature-helper");
  if (!form) return;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void check(form);
  });
}

async function check(form: HTMLFormElement): Promise<void> {
  const value = (name: string) => (form.elements.namedItem(name) as HTMLInputElement).value;
  const body = value("body");
  const secret = value("secret").trim();
  const given = value("given").trim();
  const expected = await sign(secret, body);
  const result = form.querySelector<HTMLOutputElement>("output");
  if (!result) return;
  const told = given === "" ? "" : (form.dataset[await find(secret, body, given, expected)] ?? "");
  result.replaceChildren(told, document.createElement("br"), `${form.dataset.expected}: `);
  const code = document.createElement("code");
  code.textContent = expected;
  result.append(code);
}

async function find(
  secret: string,
  body: string,
  given: string,
  expected: string,
): Promise<Finding> {
  if (given === expected) return "right";
  if (secret.startsWith("svcsec_")) return "client";
  if (given === (await sign(`whsec_${secret}`, body))) return "prefix";
  if (given.toLowerCase() === expected) return "upper";
  const other = body.endsWith("\n") ? body.replace(/\n+$/, "") : `${body}\n`;
  if (given === (await sign(secret, other))) return "newline";
  try {
    if (given === (await sign(secret, JSON.stringify(JSON.parse(body))))) return "reencoded";
  } catch {
    // Not JSON: then it was not written anew either.
  }
  return "wrong";
}

async function sign(secret: string, body: string): Promise<string> {
  const text = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  // An empty key is none: a byte stands for it, and nothing will fit.
  const bytes = text.encode(secret === "" ? "\0" : secret);
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["sign"]);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, text.encode(body)));
  return Array.from(mac, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
