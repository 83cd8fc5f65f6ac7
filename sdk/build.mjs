// Builds the checkout's script into the service, or with --check proves that the built file is fresh.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const assets = "../crates/service/assets/";

// Script and style of the first load. The page itself adds about 3 kB, on a slow phone all of it counts.
const ASSETS_GZIP_BYTES_MAX = 10_000;

const built = await build({
  entryPoints: [here("src/checkout.ts")],
  bundle: true,
  minify: true,
  format: "iife",
  // The oldest Android WebView that the checkout promises to work in.
  target: "chrome80",
  legalComments: "none",
  charset: "utf8",
  write: false,
});
const script = built.outputFiles[0].text;
const path = here(`${assets}checkout.js`);

if (process.argv.includes("--check")) {
  if (readFileSync(path, "utf8") !== script) {
    throw new Error("checkout.js is not what its source builds: run npm run build");
  }
} else {
  writeFileSync(path, script);
}

const size = (text) => gzipSync(text, { level: 9 }).length;
const style = readFileSync(here(`${assets}checkout.css`));
const total = size(script) + size(style);
console.log(`gzip bytes: script ${size(script)}, style ${size(style)}, both ${total}`);
if (total > ASSETS_GZIP_BYTES_MAX) {
  throw new Error(`script and style are over ${ASSETS_GZIP_BYTES_MAX} bytes`);
}
