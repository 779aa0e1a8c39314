import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { meaning, proposals, schemaAt, tableAbove, type Schema } from "../src/settingsCompletion";

const schema = JSON.parse(readFileSync("out/agent0.schema.json", "utf8")) as Schema;
const labels = (above: string[], before: string): string[] => proposals(schema, above, before).map((one) => one.label);

test("keys, tables and values are those of the settings", () => {
  assert.ok(labels([], "").includes("profile"));
  assert.ok(labels([], "").includes("run"));
  assert.ok(labels([], "[").includes("run"));
  assert.ok(labels([], "[run.").includes("student"));
  assert.ok(labels(["[run.student]"], "max_").includes("max_tokens"));
  assert.ok(labels([], "run.student.").includes("max_tokens"));
  assert.deepEqual(labels(["[run]"], "on_failure = ").sort(), ['"drop"', '"wait"']);
  assert.deepEqual(labels(["[run.student]"], "json_schema = "), ["true", "false"]);
  assert.ok(labels([], 'profile = "').includes('"scripted"'));
});

test("a profile's table holds settings as well", () => {
  assert.ok(labels(["[profile.mine.run.student]"], "").includes("temperature"));
  assert.ok(labels(['[profile."my.own"]'], "").includes("run"));
});

test("nothing is proposed in comments, unknown tables and behind a value", () => {
  for (const before of ["# run", "seed = 1 # ", "se ed"]) assert.deepEqual(labels(["[run]"], before), [], before);
  assert.deepEqual(labels(["[nothing]"], ""), []);
});

test("meanings stand at names, and a table ends where the next begins", () => {
  assert.match(meaning(schema, ["[run.student]"], "max_tokens = 8"), /\w/);
  assert.equal(meaning(schema, [], "nothing = 8"), "");
  assert.deepEqual(tableAbove(["[run]", "seed = 1", "[[ run.student ]] # here"]), ["run", "student"]);
});

test("every key that is proposed anywhere is a setting", () => {
  const queue: string[][] = [[]];
  for (let path = queue.pop(); path; path = queue.pop()) {
    for (const { kind, label } of proposals(schema, path.length ? [`[${path.join(".")}]`] : [], "")) {
      assert.ok(schemaAt(schema, [...path, label]), [...path, label].join("."));
      if (kind === "table" && label !== "profile") queue.push([...path, label]);
    }
  }
});
