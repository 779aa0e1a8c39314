/** A real editor in a browser: code-server with the packed extension, driven by Chromium. */

import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { chromium, type Browser, type Frame, type Locator, type Page } from "playwright-core";

const FOLDER = resolve(process.env.EDITOR_FOLDER ?? "out/editor", "node_modules");
const NODE = join(FOLDER, "node/bin/node");
const CODE = join(FOLDER, "code-server/out/node/entry.js");
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
/** A busy machine takes its time. */
const PATIENCE_MS = Number(process.env.EDITOR_PATIENCE_MS ?? 120_000);
const SETTINGS = {
  "chat.disableAIFeatures": true,
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.tips.enabled": false,
  "workbench.colorTheme": "Default Light Modern",
  "security.workspace.trust.enabled": false,
  "editor.minimap.enabled": false,
};

export class Editor {
  private constructor(
    readonly page: Page,
    readonly folder: string,
    private readonly process: ChildProcess,
    private readonly browser: Browser,
  ) {}

  /** Install the extension, start the editor on a folder with `files`, open it; `server` is the setting. */
  static async start(server: string, files: Record<string, string>): Promise<Editor> {
    const folder = mkdtempSync(join(tmpdir(), "agent0-editor-"));
    const data = join(folder, "data");
    mkdirSync(join(data, "User"), { recursive: true });
    writeFileSync(join(data, "User", "settings.json"), JSON.stringify({ ...SETTINGS, "agent0.server": server }));
    mkdirSync(join(folder, "work"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, "work", name), text);
    await ended(code(folder, ["--install-extension", resolve("out/agent0.vsix")]));
    const child = code(folder, ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-update-check"]);
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    const editor = new Editor(page, folder, child, browser);
    await editor.open(await addressOf(child)).catch(async (error: Error) => {
      await editor.stop();
      throw error;
    });
    return editor;
  }

  private async open(address: string): Promise<void> {
    this.page.setDefaultTimeout(PATIENCE_MS);
    await this.page.goto(`${address}/?folder=${encodeURIComponent(join(this.folder, "work"))}`, { waitUntil: "commit" });
    await this.page.waitForSelector(".monaco-workbench .activitybar");
  }

  /** Run a command by its name in the palette. */
  async command(name: string): Promise<void> {
    const input = await this.opened("F1");
    await input.fill(`>${name}`);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor();
    await this.page.keyboard.press("Enter");
  }

  /** The box that a key opens; pressed again where the editor was busy with something else. */
  private async opened(key: string): Promise<Locator> {
    const input = this.page.locator(".quick-input-widget input").first();
    for (let tries = 0; tries < 30; tries++) {
      await this.page.keyboard.press(key);
      const shown = await input.waitFor({ timeout: 3000 }).then(() => true, () => false);
      if (shown) return input;
    }
    throw new Error(`Nothing opens at ${key}.`);
  }

  /** Answer the box that asks for a line. */
  async answer(prompt: string, text: string): Promise<void> {
    await this.page.locator(".quick-input-widget", { hasText: prompt }).waitFor();
    await this.page.locator(".quick-input-widget input").first().fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** Choose the line of a list that has `text` in it. */
  async choose(title: string, text: string): Promise<void> {
    await this.page.locator(".quick-input-widget", { hasText: title }).waitFor();
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().click();
  }

  /** Open a file of the folder. */
  async file(name: string): Promise<void> {
    await (await this.opened("Control+P")).fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor();
    await this.page.keyboard.press("Enter");
    await this.page.locator(`.monaco-editor[data-uri$="/${name}"] .view-lines`).click();
    await this.page.locator(`.monaco-editor.focused[data-uri$="/${name}"]`).waitFor();
  }

  /** The notification that has `text` in it. */
  async notification(text: string | RegExp): Promise<string> {
    const toast = this.page.locator(".notification-list-item", { hasText: text }).first();
    await toast.waitFor();
    return toast.innerText();
  }

  async press(button: string): Promise<void> {
    await this.page.locator(".notification-list-item .monaco-button", { hasText: button }).first().click();
  }

  /** The frame of the extension's page that has `text` in it. */
  async webview(text: string): Promise<Frame> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
      for (const frame of this.page.frames()) {
        const main = await frame.locator("main").innerText({ timeout: 300 }).catch(() => "");
        if (main.includes(text)) return frame;
      }
      await this.page.waitForTimeout(200);
    }
    throw new Error(`No page shows “${text}”.`);
  }

  /** Files of the editor, its logs and settings among them, that have `text` in them. */
  filesWith(text: string): string[] {
    const entries = readdirSync(this.folder, { recursive: true, withFileTypes: true });
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    return paths.filter((path) => readFileSync(path).includes(text));
  }

  async stop(): Promise<void> {
    await this.browser.close();
    this.process.kill("SIGTERM");
    await ended(this.process);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function code(folder: string, words: string[]): ChildProcess {
  const places = ["--user-data-dir", join(folder, "data"), "--extensions-dir", join(folder, "extensions")];
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
  return spawn(NODE, [CODE, ...places, "--disable-telemetry", ...words], { env });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await new Promise((done) => child.once("exit", done));
}

async function addressOf(child: ChildProcess): Promise<string> {
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout! })) {
    lines.push(line);
    const address = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(line)?.[1];
    if (address) {
      child.stdout!.resume();
      return address;
    }
  }
  throw new Error(lines.join("\n"));
}
