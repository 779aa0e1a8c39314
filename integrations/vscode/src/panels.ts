/** Pages in tabs of the editor: runs, tasks, attempts, submitted tasks. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { problemLine } from "./connection";
import { attemptBody, runBody, submissionBody, taskBody, wholePage } from "./pages";
import type { Submission } from "./rows";
import type { Server } from "./server";
import { escaped, plain } from "./text";

interface Shown {
  panel: vscode.WebviewPanel;
  run: string;
  read: () => Promise<string>;
}

export class Panels {
  private readonly shown = new Map<string, Shown>();

  constructor(private readonly server: () => Server) {}

  openRun(run: string): void {
    this.open(run, run, async () => runBody(await this.server().run(run), await this.server().tasks(run)));
  }

  openTask(run: string, task: string): void {
    this.open(run, task, async () => taskBody(await this.server().task(run, task)));
  }

  openAttempt(run: string, attempt: string): void {
    this.open(run, attempt, async () => attemptBody(await this.server().attempt(run, attempt)));
  }

  openSubmission(submission: Submission): void {
    const name = submission.submission;
    this.open(name, name, async () => submissionBody(await this.server().submission(name)));
  }

  /** Read again what pages of these runs show; of all runs where there is none. */
  refresh(runs: Set<string>): void {
    for (const shown of this.shown.values()) {
      if (shown.panel.visible && (!runs.size || runs.has(shown.run))) void this.fill(shown);
    }
  }

  private open(run: string, name: string, read: () => Promise<string>): void {
    const key = `${run}/${name}`;
    const there = this.shown.get(key);
    if (there) return there.panel.reveal();
    const options = { enableScripts: true, localResourceRoots: [], retainContextWhenHidden: true };
    const panel = vscode.window.createWebviewPanel("agent0", plain(name, 80), vscode.ViewColumn.Active, options);
    const shown = { panel, run, read };
    this.shown.set(key, shown);
    panel.onDidDispose(() => this.shown.delete(key));
    panel.onDidChangeViewState(() => panel.visible && void this.fill(shown));
    panel.webview.onDidReceiveMessage((message: unknown) => this.follow(run, message));
    panel.webview.html = wholePage(name, `<p class="faint">…</p>`, randomBytes(16).toString("base64url"));
    void this.fill(shown);
  }

  private async fill(shown: Shown): Promise<void> {
    const body = await shown.read().catch((error: unknown) => `<p class="notice">${escaped(problemLine(error))}</p>`);
    await shown.panel.webview.postMessage({ body });
  }

  /** A page asks for another one of its run; anything else that comes from it is let fall. */
  private follow(run: string, message: unknown): void {
    const { open, name } = (message ?? {}) as { open?: unknown; name?: unknown };
    if (typeof name !== "string" || !/^[\w.-]{1,80}$/.test(name)) return;
    if (open === "task") this.openTask(run, name);
    if (open === "attempt") this.openAttempt(run, name);
  }
}
