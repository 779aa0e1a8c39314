/** Bundles the extension, writes the schema of agent0.toml, and with --tests bundles the tests as well. */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, resolve } from "node:path";
import { build } from "esbuild";

const root = resolve("../..");
const path = [resolve(root, ".venv/bin"), process.env.PATH].join(delimiter);
const shared = { bundle: true, platform: "node", format: "cjs", target: "node18", logLevel: "warning" };

const external = ["playwright-core"];

mkdirSync("out", { recursive: true });
const bundle = { entryPoints: ["src/extension.ts"], outfile: "out/extension.js", external: ["vscode"], minify: true };
const { metafile } = await build({ ...shared, ...bundle, metafile: true });
const others = Object.keys(metafile.inputs).filter((path) => path.includes("node_modules"));
console.log(`out/extension.js: ${metafile.outputs["out/extension.js"].bytes} bytes; of other packages: ${others.join(", ") || "nothing"}`);

const schema = execFileSync("python", ["settings_schema.py"], { encoding: "utf8", env: { ...process.env, PATH: path } });
writeFileSync("out/agent0.schema.json", schema);
if (!existsSync("LICENSE")) copyFileSync(resolve(root, "LICENSE"), "LICENSE");

if (process.argv.includes("--tests")) {
  rmSync("out/test", { recursive: true, force: true });
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  const entryPoints = tests.map((name) => `test/${name}`);
  await build({ ...shared, target: "node20", entryPoints, outdir: "out/test", external });
}
if (process.argv.includes("--editor")) {
  await build({ ...shared, target: "node20", entryPoints: ["test/editor.check.ts"], outfile: "out/editor.check.js", external });
}
