/** An Agent0 server on a free port with a data folder of its own, for tests. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { createInterface } from "node:readline";

const PATH = [resolve("../../.venv/bin"), process.env.PATH].join(delimiter);

export class Served {
  private constructor(
    readonly address: string,
    private readonly home: string,
    private readonly process: ChildProcess,
  ) {}

  /** Start `agent0 up`; resolves with its address. */
  static async start(): Promise<Served> {
    const home = mkdtempSync(join(tmpdir(), "agent0-vscode-"));
    const child = spawn("agent0", ["up", "--port", "0", "--profile", "scripted"], { env: environment(home) });
    let wrong = "";
    child.stderr.on("data", (text) => (wrong += text));
    for await (const line of createInterface({ input: child.stdout })) {
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (address) return new Served(address, home, child);
    }
    throw new Error(`agent0 up ended: ${wrong}`);
  }

  /** What a command prints, run on the server's data folder. */
  command(...words: string[]): string {
    return execFileSync("agent0", words, { env: environment(this.home), encoding: "utf8" });
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGINT");
    await ended;
    rmSync(this.home, { recursive: true, force: true });
  }
}

function environment(home: string): NodeJS.ProcessEnv {
  return { ...process.env, PATH, AGENT0_HOME: home, NO_COLOR: "1" };
}
