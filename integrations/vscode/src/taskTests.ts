/** Tasks in the editor's test view: by run and family. Running one asks the run's student again; its verdict decides. */

import * as vscode from "vscode";
import { problemLine } from "./connection";
import { submissionLine } from "./commands";
import { signalOf } from "./editorUi";
import type { Submission, TaskRow } from "./rows";
import type { Server } from "./server";
import { byFamily, outcomeOf } from "./outcomes";
import { plain } from "./text";

export class TaskTests implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController("agent0", "Agent0");
  private readonly tasks = new WeakMap<vscode.TestItem, { run: string; task: TaskRow }>();

  constructor(private readonly server: () => Server) {
    this.controller.resolveHandler = async (item) => (item ? this.addTasks(item) : this.addRuns());
    this.controller.refreshHandler = async () => this.addRuns();
    const run = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> => this.run(request, token);
    this.controller.createRunProfile("Ask the student", vscode.TestRunProfileKind.Run, run, true);
  }

  /** The runs of the server, without their tasks. */
  async addRuns(): Promise<void> {
    const runs = await this.server().runs().catch(() => []);
    const items = runs.map((row) => {
      const item = this.controller.items.get(row.run) ?? this.controller.createTestItem(row.run, plain(row.run, 80));
      item.description = plain(row.status, 40);
      item.canResolveChildren = true;
      return item;
    });
    this.controller.items.replace(items);
  }

  dispose(): void {
    this.controller.dispose();
  }

  private async addTasks(run: vscode.TestItem): Promise<void> {
    if (run.parent) return;
    try {
      const families = byFamily(await this.server().tasks(run.id));
      run.children.replace(families.map(([family, tasks]) => this.familyItem(run.id, family, tasks)));
    } catch (error) {
      run.error = problemLine(error);
    }
  }

  private familyItem(run: string, family: string, tasks: TaskRow[]): vscode.TestItem {
    const item = this.controller.createTestItem(`${run}/${family}`, plain(family, 80));
    item.children.replace(
      tasks.map((task) => {
        const child = this.controller.createTestItem(`${run}/${family}/${task.task}`, plain(task.question, 120));
        child.description = task.task;
        this.tasks.set(child, { run, task });
        return child;
      }),
    );
    return item;
  }

  private async run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const run = this.controller.createTestRun(request);
    const chosen = request.include ?? [...this.controller.items].map(([, item]) => item);
    const leaves: vscode.TestItem[] = [];
    for (const item of chosen) leaves.push(...(await this.leaves(item)));
    const excluded = new Set(request.exclude ?? []);
    for (const item of leaves.filter((leaf) => !excluded.has(leaf))) {
      if (token.isCancellationRequested) break;
      await this.ask(run, item, signalOf(token));
    }
    run.end();
  }

  private async leaves(item: vscode.TestItem): Promise<vscode.TestItem[]> {
    if (this.tasks.has(item)) return [item];
    if (!item.parent && !item.children.size) await this.addTasks(item);
    const below: vscode.TestItem[] = [];
    for (const [, child] of item.children) below.push(...(await this.leaves(child)));
    return below;
  }

  private async ask(run: vscode.TestRun, item: vscode.TestItem, signal: AbortSignal): Promise<void> {
    const of = this.tasks.get(item);
    if (!of?.task.question) return;
    run.started(item);
    try {
      const submitted = await this.server().submit(of.task.question, of.run, "", of.task.domain);
      const submission = await this.server().settled(submitted, signal);
      if (submission) report(run, item, submission);
      else run.skipped(item);
    } catch (error) {
      run.errored(item, new vscode.TestMessage(problemLine(error)));
    }
  }
}

function report(run: vscode.TestRun, item: vscode.TestItem, submission: Submission): void {
  const message = new vscode.TestMessage(submissionLine(submission));
  run.appendOutput(`${plain(submission.question, 200)}\r\n  ${submissionLine(submission)}\r\n`, undefined, item);
  const outcome = outcomeOf(submission);
  if (outcome === "passed") run.passed(item);
  else if (outcome === "failed") run.failed(item, message);
  else if (outcome === "errored") run.errored(item, message);
  else run.skipped(item);
}
