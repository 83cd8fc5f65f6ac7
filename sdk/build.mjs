// Builds what browsers load into the service and the npm package; with --check proves that the built
// files are fresh. Both ways the byte budgets hold, or it fails.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, brotliDecompressSync, gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const assets = "../crates/service/assets/";
const checking = process.argv.includes("--check");

// On a slow phone every byte counts. Script and style of the checkout; its page adds about 3 kB.
const CHECKOUT_GZIP_BYTES_MAX = 10_000;
const SDK_GZIP_BYTES_MAX = 6_000;

async function bundle(entry, format, legalComments = "none") {
  const built = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    format,
    // Web views of telephones that get no updates any more.
    target: ["chrome69", "safari13"],
    // Safari 13 knows it; what it gets wrong, an order of evaluation, is not relied on.
    supported: { destructuring: true },
    legalComments,
    charset: "utf8",
    write: false,
  });
  return built.outputFiles[0].text;
}

function put(path, text) {
  if (!checking) writeFileSync(here(path), text);
  else if (readFileSync(here(path), "utf8") !== text) {
    throw new Error(`${path} is not what its source builds: run npm run build`);
  }
}

/** Compressors differ between versions of Node; what they pack must not. */
function putPacked(path, text) {
  if (!checking) writeFileSync(here(path), brotliCompressSync(text));
  else if (brotliDecompressSync(readFileSync(here(path))).toString() !== text) {
    throw new Error(`${path} does not hold what its source builds: run npm run build`);
  }
}

/** The types of the package: those of the source, and what a module adds. */
function types() {
  const source = readFileSync(here("src/svc/public.ts"), "utf8");
  const codes = /export type SvcErrorCode =[^;]+;/.exec(
    readFileSync(here("src/svc/errors.ts"), "utf8"),
  )[0];
  return `${source.replace(/^import .*\n\n?/gm, "")}
${codes}

export declare class SvcError extends Error {
  readonly code: SvcErrorCode;
  /** Trying again may help, and cannot pay twice: the payer had not seen an order yet. */
  readonly recoverable: boolean;
  /** Of the service's answer, for support. */
  readonly requestId: string | undefined;
}

/** As a module: the address of the service is given. */
export declare function Svc(publishableKey: string, options: { serviceUrl: string }): SvcInstance;
`;
}

const size = (text) => gzipSync(text, { level: 9 }).length;
const budgets = [];
function budget(what, bytes, most) {
  budgets.push({ what, bytes, most });
  console.log(`${what}: ${bytes} bytes gzip of ${most}`);
  if (bytes > most) throw new Error(`${what} is over its budget of ${most} bytes`);
}

const checkout = await bundle("src/checkout.ts", "iife");
put(`${assets}checkout.js`, checkout);
const sdk = await bundle("src/svc.ts", "iife");
put(`${assets}svc.min.js`, sdk);
putPacked(`${assets}svc.min.js.br`, sdk);
// The console's libraries keep their licences in the file.
put(`${assets}console.js`, await bundle("src/console.ts", "iife", "eof"));
put(`${assets}playground.js`, await bundle("src/playground.ts", "iife"));
put(`${assets}uplot.css`, readFileSync(here("node_modules/uplot/dist/uPlot.min.css"), "utf8"));
put("npm/svc.mjs", await bundle("src/svc.module.ts", "esm"));
put("npm/svc.d.ts", types());

const style = readFileSync(here(`${assets}checkout.css`));
budget("checkout, script and style", size(checkout) + size(style), CHECKOUT_GZIP_BYTES_MAX);
budget("svc.min.js", size(sdk), SDK_GZIP_BYTES_MAX);
// For the pictures of the benchmarks. Not checked: compressors differ.
if (!checking) {
  writeFileSync(here("../bench/reports/bytes.json"), `${JSON.stringify(budgets, null, 2)}\n`);
}
