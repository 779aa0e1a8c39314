/** Tasks as tests, apart from the editor. */

import type { FamilyTasks, Submission, TaskRow, Validation } from "./rows";
import { percent } from "./text";
import { verdictWord } from "./rows";

/** Accepted tasks by family, families by name. */
export function byFamily(tasks: TaskRow[]): [string, TaskRow[]][] {
  const families = new Map<string, TaskRow[]>();
  for (const task of tasks) {
    if (task.status !== "accepted" || !task.question) continue;
    families.set(task.family, [...(families.get(task.family) ?? []), task]);
  }
  return [...families].sort(([a], [b]) => a.localeCompare(b));
}

/** What a verdict is to a test: undecided is neither passed nor failed. */
export function outcomeOf(submission: Submission): "passed" | "failed" | "errored" | "skipped" {
  if (submission.status !== "verified") return "errored";
  return ({ right: "passed", wrong: "failed", undecided: "skipped" } as const)[verdictWord(submission.correct)];
}

/** The questions of a family by level. */
export function byLevel(family: FamilyTasks): [number, string[]][] {
  const levels = new Map<number, string[]>();
  for (const { level, question } of family.tasks) levels.set(level, [...(levels.get(level) ?? []), question]);
  return [...levels];
}

/** What a validation came to, in a line. */
export function validationLine(validation: Validation): string {
  const { problems, tasks, oracle, random } = validation;
  return `${problems.join("; ") || "fit to train on"} (${tasks} tasks, own answers ${percent(oracle)} right, random ones ${percent(random)})`;
}
