/** What commands send, read from what people typed. */

import type { Diagnosis } from "./rows";

/** Characters of a question that the API takes. */
export const LONGEST_QUESTION = 2000;

export interface ForkRequest {
  at: number;
  settings: Record<string, string>;
}

/** The question in a selection or file. Throws where it is empty or too long. */
export function questionOf(text: string): string {
  const question = text.trim();
  if (!question) throw new Error("There is nothing to submit: select the task's text, or open a file with it.");
  if ([...question].length > LONGEST_QUESTION) {
    throw new Error(`A task has ${LONGEST_QUESTION} characters at most, this has ${[...question].length}: select less.`);
  }
  return question;
}

const WORD = /(?:[^\s"']|"[^"]*"|'[^']*')+/g;

/** Settings written as `run.tasks=6 run.seed=1`, in quotes as for a shell. Throws where one is no `name=value`. */
export function settingsOf(text: string): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const [word] of text.matchAll(WORD)) {
    const pair = /^([a-z_]\w*(?:\.[^\s.=]+)+)=(.*)$/s.exec(unquoted(word));
    if (!pair?.[1]) throw new Error(`“${word}” is no setting: write run.tasks=6, several with blanks between.`);
    settings[pair[1]] = unquoted(pair[2] ?? "");
  }
  return settings;
}

function unquoted(text: string): string {
  return /^(["'])(.*)\1$/s.exec(text)?.[2] ?? text;
}

/** An event's number; empty is 0, the run's end. Throws where it is none. */
export function eventOf(text: string): number {
  if (!/^\d{0,15}$/.test(text.trim())) throw new Error("Write the number of an event, or nothing for the run's end.");
  return Number(text.trim() || 0);
}

/** The fork that a diagnosis advises; undefined where it advises something else, or a fork of another run. */
export function advisedFork(why: Diagnosis): ForkRequest | undefined {
  const words = [...why.mend.matchAll(WORD)].map(([word]) => word);
  if (words.slice(0, 4).join(" ") !== `agent0 run fork ${why.run}`) return undefined;
  const fork: ForkRequest = { at: 0, settings: {} };
  for (let index = 4; index < words.length; index += 2) {
    const value = words[index + 1] ?? "";
    if (words[index] === "--at") fork.at = eventOf(value);
    else if (words[index] === "--set") Object.assign(fork.settings, settingsOf(value));
    else return undefined;
  }
  return Object.keys(fork.settings).length ? fork : undefined;
}
