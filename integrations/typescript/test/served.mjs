/** A server of Agent0 on a free port, in a process of its own, and the Python clients beside this one. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const ROOT = new URL("../../../", import.meta.url);
export const TABLE = JSON.parse(readFileSync(new URL("tests/data/client_cases.json", ROOT), "utf8"));
const PYTHON = process.env.PYTHON ?? "python";
export const SMALL = {
  "run.iterations": 1,
  "run.tasks": 4,
  "run.attempts": 2,
  "run.evaluation.validation": 4,
  "run.evaluation.test": 2,
};

/** `agent0 up` of an empty data folder: its address, and what ends it. */
export async function served() {
  const home = mkdtempSync(join(tmpdir(), "agent0-ts-"));
  const words = ["-m", "agent0", "up", "--profile", "scripted", "--port", "0", "--set", "sandbox.workers=1"];
  const environment = { ...process.env, AGENT0_HOME: home };
  const child = spawn(PYTHON, words, { cwd: ROOT, env: environment, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const [line] = await Promise.race([lines(child, 1), ended.then(() => ["nothing: it ended"])]);
  return {
    url: /** @type {string} */ (line).replace(/\/runs$/, ""),
    async stop() {
      child.kill("SIGINT");
      await ended;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** What each Python client of the server at `url` makes of the table. @returns {Promise<{ client: string, outcomes: [string, any][] }[]>} */
export async function pythonOutcomes(url, run) {
  const child = spawn(PYTHON, ["-m", "tests.client_cases", url, run], { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  return (await lines(child, Infinity)).map((line) => JSON.parse(line));
}

async function lines(child, count) {
  const printed = [];
  for await (const line of createInterface({ input: child.stdout })) {
    printed.push(line);
    if (printed.length >= count) break;
  }
  return printed;
}

/** A stand-in that gives what `answer` makes of each request; its address, and what ends it. */
export async function standIn(answer) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A stand-in that gives each path a status and a text. */
export function pages(/** @type {Record<string, [number, string]>} */ texts) {
  return standIn((request, response) => {
    const [status, text] = texts[(request.url ?? "").split("?")[0] ?? ""] ?? [404, "{}"];
    response.writeHead(status).end(text);
  });
}
