/** What the commands do, apart from the editor: `Ui` is how they ask and tell. */

import type { Server } from "./server";
import type { Diagnosis, RunRow, Submission } from "./rows";
import { verdictWord } from "./rows";
import { budgetLine } from "./budgets";
import { advisedFork, eventOf, questionOf, settingsOf } from "./requests";
import { plain } from "./text";

export interface Ui {
  /** Ask for a line; undefined: the person left. `check` says what is wrong with a line, or nothing. */
  input(prompt: string, value: string, check?: (text: string) => string | undefined): Promise<string | undefined>;
  /** Ask to choose one of `items`. */
  pick(title: string, items: { label: string; detail: string; value: string }[]): Promise<string | undefined>;
  /** Ask before something that cannot be undone. */
  confirm(message: string, action: string): Promise<boolean>;
  /** Tell something, with buttons; the one that was pressed. */
  tell(message: string, ...buttons: string[]): Promise<string | undefined>;
  /** Show that something goes on; `signal` is aborted where the person leaves. */
  wait<T>(title: string, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  openRun(run: string): void;
  openSubmission(submission: Submission): void;
  copy(text: string): Promise<void>;
}

function wrongOf(read: (text: string) => unknown): (text: string) => string | undefined {
  return (text) => {
    try {
      read(text);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };
}

/** A run's line in a list to choose from. */
function choice(run: RunRow): { label: string; detail: string; value: string } {
  return { label: plain(run.run, 80), detail: plain(`${run.status}, profile ${run.profile}`, 120), value: run.run };
}

/** The run that a command is for: the one it was called on, or one that is chosen. */
export async function chosenRun(server: Server, ui: Ui, run: string | undefined, live = false): Promise<string | undefined> {
  if (run) return run;
  const runs = (await server.runs()).filter((row) => !live || row.status === "running" || row.status === "paused");
  if (!runs.length) throw new Error(live ? "No run is going on." : "There is no run: start one by `agent0 run start`.");
  return ui.pick("Which run?", runs.map(choice));
}

/** `agent0 run why` as a notification, with the fork that mends it as a button. */
export async function why(server: Server, ui: Ui, run: string | undefined): Promise<void> {
  const name = await chosenRun(server, ui, run);
  if (!name) return;
  const diagnosis = await server.why(name);
  const advice = diagnosis.mend || diagnosis.advice;
  const text = advice ? `${diagnosis.conclusion} To mend it: ${advice}` : diagnosis.conclusion;
  const buttons = [...(advisedFork(diagnosis) ? ["Fork So"] : []), ...(diagnosis.mend ? ["Copy Command"] : []), "Open Run"];
  const pressed = await ui.tell(plain(text, 600), ...buttons);
  if (pressed === "Open Run") ui.openRun(name);
  if (pressed === "Copy Command") await ui.copy(diagnosis.mend);
  if (pressed === "Fork So") await forkAsAdvised(server, ui, diagnosis);
}

async function forkAsAdvised(server: Server, ui: Ui, diagnosis: Diagnosis): Promise<void> {
  const advised = advisedFork(diagnosis);
  if (!advised) return;
  const settings = Object.entries(advised.settings).map(([name, value]) => `${name}=${value}`).join(" ");
  if (!(await ui.confirm(plain(`Fork ${diagnosis.run} at event ${advised.at} with ${settings}?`, 600), "Fork"))) return;
  ui.openRun(await server.fork(diagnosis.run, advised.at, advised.settings));
}

/** Fork a run behind an event under other settings, and open the fork. */
export async function fork(server: Server, ui: Ui, run: string | undefined): Promise<string | undefined> {
  const name = await chosenRun(server, ui, run);
  if (!name) return undefined;
  const at = await ui.input("Behind which event? Nothing: the run's end.", "", wrongOf(eventOf));
  if (at === undefined) return undefined;
  const typed = await ui.input("Other settings, such as run.student.max_tokens=512; nothing: the same.", "", wrongOf(settingsOf));
  if (typed === undefined) return undefined;
  const begun = await server.fork(name, eventOf(at), settingsOf(typed));
  ui.openRun(begun);
  return begun;
}

/** Cancel a run for good, after asking. */
export async function cancel(server: Server, ui: Ui, run: string | undefined): Promise<boolean> {
  const name = await chosenRun(server, ui, run, true);
  if (!name || !(await ui.confirm(`Cancel ${plain(name, 80)}? It cannot be resumed; its events stay.`, "Cancel Run"))) return false;
  await server.cancel(name, "cancelled in the editor");
  return true;
}

/** Submit `text` as a task for a run's student, wait for the verdict, tell it. */
export async function submit(server: Server, ui: Ui, text: string, run?: string): Promise<Submission | undefined> {
  const question = questionOf(text);
  const model = await chosenRun(server, ui, run);
  if (!model) return undefined;
  const expected = await ui.input("The right answer, where it is known; nothing: it is computed, where it can be.", "");
  if (expected === undefined) return undefined;
  const submitted = await server.submit(question, model, expected);
  const title = `The student of ${plain(model, 80)} solves the task`;
  const submission = await ui.wait(title, (signal) => server.settled(submitted, signal));
  if (!submission) return undefined;
  if ((await ui.tell(submissionLine(submission), "Open")) === "Open") ui.openSubmission(submission);
  return submission;
}

/** What became of a submitted task, in a line. */
export function submissionLine(submission: Submission): string {
  if (submission.status !== "verified") return plain(`${submission.submission} ${submission.status}: ${submission.reason ?? ""}`);
  const answer = submission.answer === null ? "no answer" : submission.answer;
  return plain(`${verdictWord(submission.correct)}: ${answer} (${submission.reason ?? ""})`);
}

/** All budgets, to look at. */
export async function budgets(server: Server, ui: Ui): Promise<void> {
  const rows = await server.budgets();
  if (!rows.length) await ui.tell("There is no budget: no call has cost money yet.");
  else await ui.pick("Budgets", rows.map((row) => ({ label: budgetLine(row), detail: "", value: row.name })));
}
