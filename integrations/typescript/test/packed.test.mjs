/** What npm packs: its files, its types under both ways to resolve them, its import in an empty folder; and what a
 * description one version apart changes. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const TSC = join(HERE, "node_modules/.bin/tsc");
const folder = mkdtempSync(join(tmpdir(), "agent0-pack-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const USE = `import { connect, NotFoundError, type Row, type RunProgress, type paths } from "agent0-train";
const server = connect("http://127.0.0.1:8650", { key: "", patienceS: 5 });
export async function use(): Promise<RunProgress> {
  const run = await server.run("LAST");
  for await (const event of run.events({ type: "TaskAccepted", follow: true })) if (event.seq > 5) break;
  const tasks: Row[] = (await server.api.get("/v1/runs/{run}/tasks", { path: { run: run.id }, query: { limit: 5 } })).data;
  const seq: number = (await server.api.post("/v1/runs/{run}/label", { path: { run: run.id }, body: { note: "x" } })).seq;
  // @ts-expect-error the API has no such path
  await server.api.get("/v1/rans");
  // @ts-expect-error a path's names are asked for
  await server.api.get("/v1/runs/{run}");
  // @ts-expect-error a limit is a number
  await server.api.get("/v1/runs", { query: { limit: "5" } });
  // @ts-expect-error at is a number
  await run.fork({ at: "5" });
  if (tasks.length + seq < 0) throw new NotFoundError("nothing");
  return run.progress();
}
export type Runs = paths["/v1/runs"]["get"];
`;

test("what npm packs is the client alone, typed, and imported by its name", () => {
  const packed = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd: HERE, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }))[0];
  const modules = readdirSync(join(HERE, "src")).map((name) => name.replace(/\.ts$/, ""));
  const expected = ["LICENSE", "README.md", "package.json", ...modules.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`])];
  assert.deepEqual(packed.files.map((file) => file.path).sort(), expected.sort());
  assert.ok(packed.size < 60_000, `${packed.size} bytes`);

  writeFileSync(join(folder, "package.json"), '{ "type": "module", "private": true }');
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", "--silent", join(folder, packed.filename)], { cwd: folder });
  assert.deepEqual(readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith(".")), ["agent0-train"]);
  writeFileSync(join(folder, "use.ts"), USE);
  for (const [module, resolution] of [["node16", "node16"], ["esnext", "bundler"]]) {
    const words = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom,dom.asynciterable", "--module", module, "--moduleResolution", resolution, "use.ts"];
    const done = spawnSync(TSC, words, { cwd: folder, encoding: "utf8" });
    assert.equal(done.status, 0, `${resolution}: ${done.stdout}`);
  }
  const script = 'import * as client from "agent0-train"; console.log(Object.keys(client).filter((name) => typeof client[name] === "function").sort().join())';
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: folder, encoding: "utf8" }).trim();
  const errors = ["Agent0Error", "AuthError", "ConfigError", "DependencyError", "NotFoundError", "OperationError", "RequirementsError", "RunFailedError", "ServerVersionError"];
  assert.equal(printed, [...errors, "MessageReader", "Run", "Server", "connect"].sort().join());
});

/** The compiler's word on the client's source, where the API has one field less or more. */
function compiledWith(...words) {
  const copy = mkdtempSync(join(folder, "version-"));
  cpSync(join(HERE, "src"), join(copy, "src"), { recursive: true });
  cpSync(join(HERE, "tsconfig.json"), join(copy, "tsconfig.json"));
  cpSync(join(HERE, "package.json"), join(copy, "package.json"));
  writeFileSync(join(copy, "src", "api.ts"), execFileSync("python", ["describe.py", ...words], { cwd: HERE, encoding: "utf8" }));
  return spawnSync(TSC, ["-p", "tsconfig.json", "--noEmit"], { cwd: copy, encoding: "utf8" });
}

test("a description with a field more changes nothing; the loss of one that is used is noticed", () => {
  const more = compiledWith("--add", "Begun.mood");
  assert.equal(more.status, 0, more.stdout);
  const less = compiledWith("--drop", "Begun.run");
  assert.match(less.stdout, /src\/runs\.ts.*'run'/);
});
