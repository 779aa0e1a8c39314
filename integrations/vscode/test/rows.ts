/** Rows as the API sends them, with hostile text in every field of it. */

import type { Attempt, RunOverview, Submission, TaskRow } from "../src/rows";

export const HOSTILE =
  `<img src=x onerror=hacked()> "'><script>hacked()</script> [x](command:agent0.cancel) $(trash) \u202e\u200b` +
  "</pre></title><iframe src='https://example.org'></iframe>\n&amp; javascript:hacked()";

export const run: RunOverview = {
  run: HOSTILE,
  name: HOSTILE,
  profile: HOSTILE,
  status: HOSTILE,
  started: HOSTILE,
  iteration: 1,
  iterations: 2,
  tasks: 3,
  attempts: 4,
  validation: [
    { iteration: -1, validation: 0.25, lower95: 0.1, upper95: 0.4 },
    { iteration: 0, validation: null, lower95: null, upper95: null },
    { iteration: 1, validation: 0.75, lower95: null, upper95: null },
  ],
  test: [{ checkpoint: HOSTILE, forced_tool: 1, n: 24, accuracy: 0.5, lower95: 0.3, upper95: 0.7 }],
  alarms: [{ severity: HOSTILE, message: HOSTILE }],
  why: { run: HOSTILE, well: false, conclusion: HOSTILE, mend: HOSTILE, advice: HOSTILE },
  heldout_first: null,
  heldout_last: 0.5,
  open_failures: 1,
  waits_for: HOSTILE,
  carried: true,
};

export const task: TaskRow = {
  task: HOSTILE,
  iteration: 0,
  domain: HOSTILE,
  family: HOSTILE,
  level: 1,
  status: "accepted",
  question: HOSTILE,
  reason: HOSTILE,
  attempts: 4,
  solve_rate: 0.5,
};

export const attempt: Attempt = {
  run: HOSTILE,
  attempt: HOSTILE,
  task: HOSTILE,
  status: HOSTILE,
  answer: HOSTILE,
  correct: 0,
  reward: 0.5,
  turns: 1,
  tool_calls: 1,
  student: HOSTILE,
  model: HOSTILE,
  question: HOSTILE,
  transcript: [{ role: HOSTILE, content: HOSTILE, name: HOSTILE, thinking: HOSTILE }],
  verdicts: [{ verifier: HOSTILE, correct: null, reason: HOSTILE, expected: HOSTILE, got: HOSTILE }],
  receipts: [{ role: "student", reward_set: HOSTILE, total: 1, parts: [{ name: HOSTILE, value: 1, weight: 1, worth: 1 }] }],
};

export const submission: Submission = {
  submission: HOSTILE,
  source: HOSTILE,
  student: HOSTILE,
  question: HOSTILE,
  expected: HOSTILE,
  status: HOSTILE,
  answer: HOSTILE,
  correct: null,
  reason: HOSTILE,
};
