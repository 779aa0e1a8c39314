/** The lines of the runs tree, apart from the editor. */

import type { RunRow, TaskRow } from "./rows";
import { percent, plain } from "./text";

export interface TreeLine {
  label: string;
  description: string;
  tooltip: string;
  icon: string;
  context: string;
}

const ICONS: Record<string, string> = {
  running: "sync",
  paused: "debug-pause",
  finished: "pass",
  failed: "error",
  cancelled: "circle-slash",
  accepted: "pass",
  rejected: "circle-slash",
};
const LIVE = ["running", "paused"];

/** What a run is: its status, how far it is, and how good its student is. */
export function runLine(run: RunRow): TreeLine {
  const last = run.heldout_last ?? run.validation;
  const parts = [
    run.status === "running" && run.carried === false ? "running nowhere" : run.status,
    LIVE.includes(run.status) && run.iteration !== null ? `iteration ${run.iteration}` : "",
    last === null ? "" : percent(last),
    run.open_failures ? `${run.open_failures} failures` : "",
  ];
  const waits = run.waits_for ? [`waits for ${run.waits_for}`] : [];
  const about = [run.run, `profile ${run.profile}`, `${run.tasks ?? 0} tasks, ${run.attempts ?? 0} attempts`, ...waits];
  return {
    label: plain(run.run, 80),
    description: plain(parts.filter(Boolean).join(" · "), 120),
    tooltip: about.map((line) => plain(line)).join("\n"),
    icon: ICONS[run.status] ?? "circle-outline",
    context: LIVE.includes(run.status) ? "runLive" : "run",
  };
}

/** What a task is: its family, how often it was solved, its question. */
export function taskLine(task: TaskRow): TreeLine {
  const solved = percent(task.solve_rate);
  return {
    label: plain(task.task, 80),
    description: plain([task.family, solved && `solved ${solved}`].filter(Boolean).join(" · "), 120),
    tooltip: plain(task.question ?? task.reason ?? "", 600),
    icon: ICONS[task.status] ?? "circle-outline",
    context: "task",
  };
}
