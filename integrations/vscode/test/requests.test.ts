import assert from "node:assert/strict";
import { test } from "node:test";
import { advisedFork, eventOf, LONGEST_QUESTION, questionOf, settingsOf } from "../src/requests";
import { HOSTILE } from "./rows";

const diagnosis = (mend: string) => ({ run: "r-1", well: false, conclusion: "", mend, advice: "" });

test("a question is the text without blanks around it, and refused where it is empty or too long", () => {
  assert.equal(questionOf("\n Compute 1+1. \n"), "Compute 1+1.");
  assert.throws(() => questionOf(" \n"), /nothing to submit: select/);
  assert.throws(() => questionOf("x".repeat(LONGEST_QUESTION + 1)), /2000 characters at most.*2001: select less/);
});

test("settings are read as a shell would", () => {
  assert.deepEqual(settingsOf(`run.tasks=6  'run.evaluation.benchmarks=["a", "b"]' run.name="x y"`), {
    "run.tasks": "6",
    "run.evaluation.benchmarks": '["a", "b"]',
    "run.name": "x y",
  });
  assert.deepEqual(settingsOf(""), {});
  for (const wrong of ["tasks=6", "run.tasks", "--set", HOSTILE]) assert.throws(() => settingsOf(wrong), /is no setting/);
});

test("an event is a number, and nothing is the run's end", () => {
  assert.deepEqual([eventOf(""), eventOf(" 12 ")], [0, 12]);
  for (const wrong of ["-1", "1e3", "x"]) assert.throws(() => eventOf(wrong), /number of an event/);
});

test("a fork is taken from advice about this run alone, and from nothing that is more than a fork", () => {
  const advice = "agent0 run fork r-1 --at 20 --set run.student.max_tokens=512 --set 'run.x=[1, 2]'";
  assert.deepEqual(advisedFork(diagnosis(advice)), { at: 20, settings: { "run.student.max_tokens": "512", "run.x": "[1, 2]" } });
  for (const other of ["", "agent0 run fork r-2 --at 20 --set run.a=1", "agent0 model get x", `${advice} --plugin a.py`, `${advice} ; rm`]) {
    assert.equal(advisedFork(diagnosis(other)), undefined, other);
  }
});
