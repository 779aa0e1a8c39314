import assert from "node:assert/strict";
import { test } from "node:test";
import { attemptBody, curve, runBody, submissionBody, taskBody, wholePage } from "../src/pages";
import { budgetLine, budgetStatus } from "../src/budgets";
import { plain, visible } from "../src/text";
import { runLine, taskLine } from "../src/tree";
import { submissionLine } from "../src/commands";
import { byFamily, outcomeOf } from "../src/outcomes";
import { HOSTILE, attempt, run, submission, task } from "./rows";

const BODIES = {
  run: runBody(run, [task]),
  task: taskBody({ ...task, attempts: [attempt] } as never),
  attempt: attemptBody(attempt),
  submission: submissionBody({ ...submission, solution: attempt }),
};

for (const [name, body] of Object.entries(BODIES)) {
  test(`a hostile text stays text on the page of a ${name}`, () => {
    assert.ok(body.includes("&lt;img src=x onerror=hacked()&gt;"));
    assert.doesNotMatch(body, /<(img|script|iframe|a|style|meta|base)\b/i);
    const unquoted = body.replace(/="[^"]*"/g, "");
    for (const tag of unquoted.match(/<[^>]*>/g) ?? []) assert.doesNotMatch(tag, /\son\w+|style|javascript:/i, tag);
    assert.doesNotMatch(body, /[\u202e\u200b]/);
    assert.ok(body.includes("‹U+202E›"));
  });
}

test("a page runs its own script alone and loads nothing", () => {
  const page = wholePage(HOSTILE, BODIES.attempt, "abc");
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1] ?? "";
  assert.match(policy, /^default-src 'none'; style-src 'nonce-abc'; script-src 'nonce-abc'/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  assert.equal(page.match(/<script/g)?.length, 1);
  assert.equal(page.match(/nonce="abc"/g)?.length, 2);
});

test("labels and notifications hold one line without links, commands and icons", () => {
  const row = { ...run, validation: 0.5 };
  const lines = [runLine(row).label, runLine(row).description, taskLine(task).description, submissionLine(submission)];
  for (const line of [...lines, budgetLine({ scope: HOSTILE, name: HOSTILE, cap: 1, spent: 1, reserved: 0 })]) {
    assert.doesNotMatch(line, /\]\(|\$\(|\n/);
  }
  assert.equal(plain("[a](command:b) $(trash)\n c"), "[a] (command:b) $ (trash) c");
  assert.equal(plain("x".repeat(400)).length, 300);
  assert.equal(visible("a\u202eb"), "a‹U+202E›b");
});

test("a curve has a point for each evaluation and says that there is none", () => {
  assert.equal(curve(run.validation).match(/<circle/g)?.length, 2);
  assert.match(curve([]), /Nothing is evaluated yet/);
  assert.doesNotMatch(curve(run.validation), /NaN/);
});

test("the status bar tells the budget that is nearest to its cap", () => {
  const wide = { scope: "run", name: "a", cap: 10e9, spent: 5e9, reserved: 0 };
  const tight = { scope: "day", name: "b", cap: 1e9, spent: 0.5e9, reserved: 0.45e9 };
  const capless = { scope: "user", name: "c", cap: null, spent: 99e9, reserved: 0 };
  assert.deepEqual({ ...budgetStatus([capless, wide, tight]), tooltip: "" }, { text: "Agent0: $0.50 of $1.00", tooltip: "", warns: true });
  assert.equal(budgetStatus([wide]).warns, false);
  assert.match(budgetStatus([]).text, /no budget/);
});

test("a run that no process executes says so", () => {
  assert.match(runLine({ ...run, validation: 0.5, status: "running", carried: false } as never).description, /running nowhere/);
  assert.equal(runLine({ ...run, validation: null, status: "paused" } as never).context, "runLive");
});

test("tests are the accepted tasks by family, and undecided is neither passed nor failed", () => {
  const rows = [task, { ...task, status: "rejected" }, { ...task, family: "a", question: null }];
  assert.deepEqual(byFamily(rows).map(([family, tasks]) => [family, tasks.length]), [[task.family, 1]]);
  const words = [1, 0, null].map((correct) => outcomeOf({ ...submission, status: "verified", correct }));
  assert.deepEqual(words, ["passed", "failed", "skipped"]);
  assert.equal(outcomeOf({ ...submission, status: "failed", correct: null }), "errored");
});
