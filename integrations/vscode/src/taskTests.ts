/** Tests in the editor's test view. Of a run, its tasks by family: running one asks the run's student again, and its
 *  verdict decides. Of the families themselves, their levels: running one has the server validate it. */

import * as vscode from "vscode";
import { problemLine } from "./connection";
import { submissionLine } from "./commands";
import { signalOf } from "./editorUi";
import type { FamilyRow, Submission, TaskRow } from "./rows";
import type { Server } from "./server";
import { byFamily, byLevel, outcomeOf, validationLine } from "./outcomes";
import { plain } from "./text";

export class TaskTests implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController("agent0", "Agent0");
  private readonly tasks = new WeakMap<vscode.TestItem, { run: string; task: TaskRow }>();
  private readonly families = new WeakMap<vscode.TestItem, FamilyRow>();
  private readonly levels = new WeakMap<vscode.TestItem, { family: string; level: number }>();

  constructor(private readonly server: () => Server) {
    this.controller.resolveHandler = async (item) => (item ? this.addBelow(item) : this.addRuns());
    this.controller.refreshHandler = async () => this.addRuns();
    const run = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> => this.run(request, token);
    this.controller.createRunProfile("Ask the student, or validate", vscode.TestRunProfileKind.Run, run, true);
  }

  /** The families and runs of the server, without their tasks. An old server has no list of families. */
  async addRuns(): Promise<void> {
    const [runs, families] = await Promise.all([this.server().runs().catch(() => []), this.server().families().catch(() => [])]);
    const items = runs.map((row) => {
      const item = this.controller.items.get(row.run) ?? this.controller.createTestItem(row.run, plain(row.run, 80));
      item.description = plain(row.status, 40);
      item.canResolveChildren = true;
      return item;
    });
    const all = this.controller.createTestItem("families/", "Task families");
    all.children.replace(
      families.map((row) => {
        const item = this.controller.createTestItem(`families/${row.family}`, plain(row.family, 80));
        item.description = plain(row.domain, 40);
        item.canResolveChildren = true;
        this.families.set(item, row);
        return item;
      }),
    );
    this.controller.items.replace(families.length ? [all, ...items] : items);
  }

  dispose(): void {
    this.controller.dispose();
  }

  private async addBelow(item: vscode.TestItem): Promise<void> {
    const family = this.families.get(item);
    if (!family) return this.addTasks(item);
    try {
      const levels = byLevel(await this.server().family(family.family));
      item.children.replace(levels.map(([level, questions]) => this.levelItem(family.family, level, questions)));
    } catch (error) {
      item.error = problemLine(error);
    }
  }

  private levelItem(family: string, level: number, questions: string[]): vscode.TestItem {
    const id = `families/${family}/${level}`;
    const item = this.controller.createTestItem(id, `level ${level}`);
    this.levels.set(item, { family, level });
    item.children.replace(questions.map((text, at) => this.controller.createTestItem(`${id}/${at}`, plain(text, 120))));
    return item;
  }

  private async addTasks(run: vscode.TestItem): Promise<void> {
    if (run.parent || run.id === "families/") return;
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
      const level = this.levels.get(item);
      if (level) await this.validate(run, item, level);
      else await this.ask(run, item, signalOf(token));
    }
    run.end();
  }

  private async leaves(item: vscode.TestItem): Promise<vscode.TestItem[]> {
    if (this.tasks.has(item) || this.levels.has(item)) return [item];
    if (item.parent && this.levels.has(item.parent)) return [item.parent];
    if ((!item.parent || this.families.has(item)) && !item.children.size) await this.addBelow(item);
    const below: vscode.TestItem[] = [];
    for (const [, child] of item.children) below.push(...(await this.leaves(child)));
    return below;
  }

  private async validate(run: vscode.TestRun, item: vscode.TestItem, of: { family: string; level: number }): Promise<void> {
    run.started(item);
    try {
      const validation = await this.server().validate(of.family, of.level);
      const line = plain(validationLine(validation));
      run.appendOutput(`${of.family}, level ${of.level}: ${line}\r\n`, undefined, item);
      if (validation.problems.length) run.failed(item, new vscode.TestMessage(line));
      else run.passed(item);
    } catch (error) {
      run.errored(item, new vscode.TestMessage(problemLine(error)));
    }
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
