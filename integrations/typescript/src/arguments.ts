/** What callers hand over, refused where it is called: JavaScript does not look at types. */
import { ConfigError } from "./errors.js";

interface Kind {
  words: string;
  example: string;
  holds: (value: unknown) => boolean;
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
const TEXT: Kind = { words: "text", example: '"text"', holds: (value) => typeof value === "string" };
const FLAG: Kind = { words: "truth value", example: "true", holds: (value) => typeof value === "boolean" };
const COUNT: Kind = {
  words: "whole number from 0 on",
  example: "0",
  holds: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
};
const SECONDS: Kind = { words: "number of seconds", example: "60", holds: (value) => typeof value === "number" && value >= 0 };
const ROWS: Kind = {
  words: "file or rows: an array of objects",
  example: '[{ question: "1 + 1?", answer: "2" }]',
  holds: (value) => Array.isArray(value) && value.every(isObject),
};
const KINDS: Record<string, Kind> = {
  ...Object.fromEntries(
    ["type", "task", "reason", "columns", "tag", "status", "text", "name", "profile", "adapter", "url", "key"].map((name) => [name, TEXT]),
  ),
  ...Object.fromEntries(["follow", "hidden", "forks", "wait"].map((name) => [name, FLAG])),
  at: COUNT,
  after: COUNT,
  timeout: SECONDS,
  patienceS: SECONDS,
  questions: ROWS,
  heldout: ROWS,
  settings: { words: "mapping from keys to values", example: '{ "run.tasks": 8 }', holds: isObject },
  callback: { words: "function", example: "console.log", holds: (value) => typeof value === "function" },
  signal: { words: "AbortSignal", example: "AbortSignal.timeout(1000)", holds: (value) => value instanceof AbortSignal },
};

/** Require that `value` is what an argument called `name` may be; undefined is one that was left out. */
export function requireKind(name: string, value: unknown): void {
  const kind = KINDS[name];
  if (kind === undefined || value === undefined || kind.holds(value)) return;
  const shown = typeof value === "string" ? `'${value}'` : typeof value === "object" ? JSON.stringify(value) : String(value);
  const type = value === null ? "It is null." : `It is of type ${typeof value}.`;
  throw new ConfigError(`${name} = ${shown.slice(0, 60)} is no ${kind.words}.`, type, `Write ${name}: ${kind.example}`);
}

/** Require that `options` has none but `names`, each of its kind. */
export function requireAll(options: object, ...names: string[]): void {
  if (!isObject(options)) throw new ConfigError(`${String(options).slice(0, 60)} is no object of options.`, "", `Known: ${names.join(", ")}.`);
  for (const [name, value] of Object.entries(options)) {
    if (!names.includes(name)) throw new ConfigError(`There is no option ${name.slice(0, 60)}.`, nearest(name, names), `Known: ${names.join(", ")}.`);
    requireKind(name, value);
  }
}

/** `Did you mean …?`, or nothing where nothing is near. */
export function nearest(name: string, names: readonly string[]): string {
  const ranked = names.map((other) => ({ other, cost: distance(name, other) + Math.abs(name.length - other.length) / 100 }));
  const best = ranked.sort((left, right) => left.cost - right.cost)[0];
  return best !== undefined && best.cost <= name.length / 2 ? `Did you mean ${best.other}?` : "";
}

/** How many characters are put in, taken out or changed between two texts. */
function distance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, place) => place);
  for (let i = 1; i <= left.length; i++) {
    const before = row;
    row = [i];
    for (let j = 1; j <= right.length; j++) {
      const change = before[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1);
      row.push(Math.min(before[j]! + 1, row[j - 1]! + 1, change));
    }
  }
  return row[right.length]!;
}
