/** What the API sends of runs, attempts, tasks and budgets: the fields that the extension reads. */

export interface RunRow {
  run: string;
  name: string;
  profile: string;
  status: string;
  started: string | null;
  iteration: number | null;
  tasks: number | null;
  attempts: number | null;
  validation: number | null;
  heldout_first: number | null;
  heldout_last: number | null;
  open_failures: number | null;
  waits_for: string | null;
  carried: boolean | null;
}

export interface CurvePoint {
  iteration: number;
  validation: number | null;
  lower95: number | null;
  upper95: number | null;
}

export interface TestScore {
  checkpoint: string;
  forced_tool: number | boolean | null;
  n: number;
  accuracy: number | null;
  lower95: number | null;
  upper95: number | null;
}

export interface Alarm {
  severity?: string;
  message?: string;
}

export interface Diagnosis {
  run: string;
  well: boolean;
  conclusion: string;
  mend: string;
  advice: string;
}

export interface RunOverview extends Omit<RunRow, "validation"> {
  validation: CurvePoint[];
  iterations: number | null;
  test: TestScore[];
  alarms: Alarm[];
  why: Diagnosis | null;
}

export interface TaskRow {
  task: string;
  iteration: number;
  domain: string;
  family: string;
  level: number | null;
  status: string;
  question: string | null;
  reason: string | null;
  attempts: number | null;
  solve_rate: number | null;
}

export interface FamilyRow {
  family: string;
  domain: string;
  levels: number;
}

/** A family with some tasks of its first levels. */
export interface FamilyTasks extends FamilyRow {
  tasks: { level: number; question: string }[];
}

/** Whether a level is fit to train on: `problems` is empty then. */
export interface Validation {
  level: number;
  tasks: number;
  oracle: number;
  random: number;
  problems: string[];
}

export interface AttemptRow {
  attempt: string;
  task: string;
  status: string;
  answer: string | null;
  correct: number | boolean | null;
  reward: number | null;
  turns: number | null;
  tool_calls: number | null;
}

export interface Message {
  role: string;
  content: string;
  name: string;
  thinking: string;
}

export interface Verdict {
  verifier: string;
  correct: number | boolean | null;
  reason: string;
  expected: string | null;
  got: string | null;
}

export interface Receipt {
  role: string;
  reward_set: string;
  total: number | null;
  parts: { name: string; value: number | null; weight: number | null; worth: number | null }[];
}

export interface Attempt extends AttemptRow {
  run: string;
  student: string;
  model: string;
  question: string | null;
  transcript: Message[];
  verdicts: Verdict[];
  receipts?: Receipt[];
}

export interface Submission {
  submission: string;
  source: string;
  student: string;
  question: string;
  expected: string;
  status: string;
  answer: string | null;
  correct: number | boolean | null;
  reason: string | null;
  solution?: Attempt | null;
}

export interface Budget {
  scope: string;
  name: string;
  cap: number | null;
  spent: number;
  reserved: number;
}

/** A verdict as the API has it (1, 0, true, false, null) in a word; null is "cannot tell". */
export function verdictWord(correct: number | boolean | null | undefined): "right" | "wrong" | "undecided" {
  if (correct === null || correct === undefined) return "undecided";
  return correct ? "right" : "wrong";
}
