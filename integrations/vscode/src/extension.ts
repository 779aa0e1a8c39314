/** The extension: puts tree, pages, commands, status bar, tests and settings together. */

import * as vscode from "vscode";
import { budgetStatus } from "./budgets";
import * as commands from "./commands";
import { originOf, problemLine, serverAt } from "./connection";
import { editorUi } from "./editorUi";
import { follow, rest } from "./live";
import { Panels } from "./panels";
import { RunsView, type Node } from "./runsView";
import type { Server } from "./server";
import { TaskTests } from "./taskTests";
import { plain } from "./text";
import { registerToml } from "./toml";

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const door = new Door(context);
  context.subscriptions.push(door);
  registerToml(context);
  await door.connect();
}

/** The key of a server is stored under its address, so that it goes to no other one. */
function secretName(address: string): string {
  return `agent0.key ${address}`;
}

class Door implements vscode.Disposable {
  private server: Server = serverAt("http://127.0.0.1:8650");
  private following = new AbortController();
  private readonly bar = vscode.window.createStatusBarItem("agent0.budget", vscode.StatusBarAlignment.Left, 50);
  private readonly panels = new Panels(() => this.server);
  private readonly tests = new TaskTests(() => this.server);
  private readonly runs = new RunsView(() => this.server, (error) => this.showProblem(error));
  private readonly tree = vscode.window.createTreeView("agent0.runs", { treeDataProvider: this.runs });
  private readonly ui = editorUi(this.panels);

  constructor(private readonly context: vscode.ExtensionContext) {
    this.bar.name = "Agent0";
    this.bar.text = "Agent0";
    this.bar.show();
    this.register();
    const configured = vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("agent0.server")) void this.connect();
    });
    context.subscriptions.push(configured);
  }

  /** Use the server that the settings name, from now on. */
  async connect(): Promise<void> {
    this.following.abort();
    const following = (this.following = new AbortController());
    try {
      const key = (await this.context.secrets.get(secretName(originOf(this.setting())))) ?? "";
      if (following.signal.aborted) return;
      this.server = serverAt(this.setting(), key);
    } catch (error) {
      return this.showProblem(error);
    }
    this.runs.refresh();
    const state = (error?: unknown): void => (error ? this.showProblem(error) : undefined);
    void follow(this.server, { changed: (runs) => this.refresh(runs), state, rest }, following.signal);
  }

  dispose(): void {
    this.following.abort();
    for (const part of [this.bar, this.tests, this.tree]) part.dispose();
  }

  private setting(): string {
    return vscode.workspace.getConfiguration("agent0").get<string>("server", "");
  }

  private register(): void {
    this.command("agent0.refresh", async () => this.connect());
    this.command("agent0.setServer", async () => this.setServer());
    this.command("agent0.setKey", async () => this.setKey());
    this.command("agent0.openRun", async (node) => {
      const run = await commands.chosenRun(this.server, this.ui, runOf(node));
      if (run) this.panels.openRun(run);
    });
    this.command("agent0.openTask", async (run, task) => this.panels.openTask(String(run), String(task)));
    this.command("agent0.why", async (node) => commands.why(this.server, this.ui, runOf(node)));
    this.command("agent0.fork", async (node) => commands.fork(this.server, this.ui, runOf(node)));
    this.command("agent0.cancel", async (node) => commands.cancel(this.server, this.ui, runOf(node)));
    this.command("agent0.submit", async () => commands.submit(this.server, this.ui, editedText()));
    this.command("agent0.budgets", async () => commands.budgets(this.server, this.ui));
  }

  private command(name: string, act: (...args: unknown[]) => Promise<unknown>): void {
    const command = vscode.commands.registerCommand(name, async (...args: unknown[]) => {
      await act(...args).catch((error: unknown) => vscode.window.showErrorMessage(plain(problemLine(error), 600)));
    });
    this.context.subscriptions.push(command);
  }

  private async setServer(): Promise<void> {
    const check = (text: string): string | undefined => {
      try {
        originOf(text);
        return undefined;
      } catch (error) {
        return (error as Error).message;
      }
    };
    const typed = await this.ui.input("Address of the server, as `agent0 up` prints it", this.setting(), check);
    const target = vscode.ConfigurationTarget.Global;
    if (typed) await vscode.workspace.getConfiguration("agent0").update("server", typed.trim(), target);
  }

  private async setKey(): Promise<void> {
    const address = originOf(this.setting());
    const prompt = `Key for ${address}, as \`agent0 api key add\` printed it; nothing: forget the stored one.`;
    const key = await vscode.window.showInputBox({ prompt, password: true, ignoreFocusOut: true });
    if (key === undefined) return;
    if (key.trim()) await this.context.secrets.store(secretName(address), key.trim());
    else await this.context.secrets.delete(secretName(address));
    await this.connect();
  }

  private refresh(runs: Set<string>): void {
    this.runs.refresh();
    this.panels.refresh(runs);
    if (!runs.size) void this.tests.addRuns();
    void this.showBudgets();
  }

  private async showBudgets(): Promise<void> {
    try {
      const status = budgetStatus(await this.server.budgets());
      this.bar.text = status.text;
      this.bar.tooltip = status.tooltip;
      this.bar.command = "agent0.budgets";
      this.bar.backgroundColor = status.warns ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
      this.tree.message = undefined;
    } catch (error) {
      this.showProblem(error);
    }
  }

  /** One line on what is wrong, in the status bar and above the runs. */
  private showProblem(error: unknown): void {
    const problem = plain(problemLine(error), 600);
    this.bar.text = "$(warning) Agent0";
    this.bar.tooltip = problem;
    this.bar.command = "agent0.refresh";
    this.bar.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
    this.tree.message = problem;
  }
}

function runOf(node: unknown): string | undefined {
  return typeof node === "string" ? node : (node as Node | undefined)?.run?.run;
}

/** The selection of the open editor, or all of its text. */
function editedText(): string {
  const editor = vscode.window.activeTextEditor;
  if (!editor) throw new Error("No file is open: open one with a task, and select the task.");
  return editor.document.getText(editor.selection.isEmpty ? undefined : editor.selection);
}
