/** Tasks as tests, apart from the editor. */

import type { Submission, TaskRow } from "./rows";
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
