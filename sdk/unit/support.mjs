// TypeScript for Node, by the same builder as the real thing.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

let loads = 0;

/** Each time anew, as on another page. */
export async function load(source) {
  const built = await build({
    entryPoints: [fileURLToPath(new URL(`../${source}`, import.meta.url))],
    bundle: true,
    format: "esm",
    write: false,
  });
  const code = Buffer.from(built.outputFiles[0].text).toString("base64");
  loads += 1;
  return import(`data:text/javascript;base64,${code}#${loads}`);
}

/** What was warned of on the console meanwhile. */
export function warnings(call) {
  const told = [];
  const { warn } = console;
  console.warn = (text) => told.push(text);
  try {
    call();
  } finally {
    console.warn = warn;
  }
  return told;
}
