/** The extension's side of the protocol and its commands against a server that runs. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as commands from "../src/commands";
import { problemLine, serverAt } from "../src/connection";
import { follow, rest } from "../src/live";
import { attemptBody, runBody, submissionBody, taskBody } from "../src/pages";
import { byLevel, validationLine } from "../src/outcomes";
import { runLine } from "../src/tree";
import type { Server } from "../src/server";
import { HOSTILE } from "./rows";
import { Person } from "./person";
import { Served } from "./served";

let served: Served;
let server: Server;
let finished: string;

before(async () => {
  served = await Served.start();
  server = serverAt(served.address);
});
after(async () => served.stop());

async function started(settings: Record<string, string> = {}): Promise<string> {
  return (await server.api.post("/v1/runs", { body: { profile: "scripted", name: "", adapter: "", settings } })).run;
}

/** Follow the server until `until` is true of the runs that changed together. */
async function followed(until: (runs: Set<string>) => Promise<boolean>): Promise<void> {
  const abort = new AbortController();
  const problems: unknown[] = [];
  const changed = (runs: Set<string>): void => void until(runs).then((done) => done && abort.abort());
  await follow(server, { changed, state: (problem) => void (problem && problems.push(problem)), rest }, abort.signal);
  assert.deepEqual(problems, []);
}

async function statusOf(run: string): Promise<string> {
  return (await server.runs()).find((row) => row.run === run)?.status ?? "";
}

test("the tree follows a run from its start to its end", async () => {
  const lines = new Set<string>();
  const begun = new Promise<string>((done) => {
    void followed(async (runs) => {
      if (!runs.size) done(started());
      for (const row of await server.runs()) lines.add(runLine(row).icon);
      return (await server.runs()).some((row) => row.status === "finished");
    }).then(() => lines.add("followed"));
  });
  finished = await begun;
  await followed(async () => (await statusOf(finished)) === "finished");
  assert.ok(lines.has("sync"), [...lines].join());
  assert.equal(runLine((await server.runs()).find((row) => row.run === finished)!).icon, "pass");
});

test("pages show a run, its tasks and transcripts", async () => {
  const [run, tasks] = [await server.run(finished), await server.tasks(finished)];
  assert.equal(tasks.length, run.tasks);
  assert.equal((await server.tasks(finished, 5)).length, 5);
  assert.match(runBody(run, tasks), /<svg[\s\S]*data-open="task"/);
  const accepted = tasks.find((row) => row.attempts);
  const task = await server.task(finished, accepted!.task);
  assert.match(taskBody(task), /data-open="attempt"/);
  const attempt = await server.attempt(finished, task.attempts[0]!.attempt);
  const body = attemptBody(attempt);
  assert.match(body, /class="turn assistant"/);
  assert.match(body, /<h2>Reward<\/h2>/);
});

test("why is told as a notification", async () => {
  const person = new Person([], ["Open Run"]);
  await commands.why(server, person, finished);
  assert.match(person.told[0]!, new RegExp(`^${finished}: `));
  assert.deepEqual(person.opened, [finished]);
});

test("a run that can be mended is forked as advised", async () => {
  const bad = await started({ "run.student.max_tokens": "8" });
  await followed(async () => (await statusOf(bad)) === "finished");
  const person = new Person([true], ["Fork So"]);
  await commands.why(server, person, bad);
  assert.match(person.told[0]!, /To mend it: agent0 run fork/);
  const [forked] = person.opened;
  const config = await server.api.get("/v1/runs/{run}", { path: { run: forked! } });
  assert.match(JSON.stringify(config), /"max_tokens": ?512/);
});

test("a fork begins behind an event under other settings, and is cancelled when a person says so", async () => {
  const fork = await commands.fork(server, new Person(["150", "run.iterations=500"]), finished);
  assert.ok(fork && fork !== finished);
  assert.equal(await commands.cancel(server, new Person([false]), fork), false);
  assert.notEqual(await statusOf(fork), "cancelled");
  assert.equal(await commands.cancel(server, new Person([true]), fork), true);
  await followed(async () => (await statusOf(fork)) === "cancelled");
  await assert.rejects(commands.cancel(server, new Person([true]), fork), /is cancelled/);
});

test("a task that is submitted is answered, judged and shown", async () => {
  const person = new Person([""], ["Open"]);
  const submission = await commands.submit(server, person, " Compute 2+3. ", finished);
  assert.equal(submission?.status, "verified");
  assert.equal(person.told[0], commands.submissionLine(submission));
  assert.match(person.told[0]!, /^(right: 5|wrong: .*) \(/);
  assert.deepEqual(person.opened, [submission.submission]);
  assert.match(submissionBody(await server.submission(submission.submission)), /class="(right|wrong)"[\s\S]*class="turn/);
});

test("a hostile task stays text", async () => {
  const person = new Person([""], []);
  const submission = await commands.submit(server, person, HOSTILE.replace(/[\u202e\u200b]/g, ""), finished);
  assert.ok(submission);
  assert.doesNotMatch(person.told[0]!, /\]\(|\$\(|\n/);
  assert.doesNotMatch(submissionBody(await server.submission(submission.submission)), /<(img|script|iframe)/);
});

test("families have tasks by level, and a level is validated by the server", async () => {
  const families = (await server.families()).map((row) => row.family);
  assert.ok(families.length > 10 && families.includes("arithmetic"));
  const levels = byLevel(await server.family("arithmetic"));
  assert.deepEqual(levels.map(([level, questions]) => [level, questions.length]), [[1, 3], [2, 3], [3, 3], [4, 3]]);
  const validation = await server.validate("arithmetic", 1);
  assert.match(validationLine(validation), /20 tasks, own answers 100% right/);
  assert.deepEqual(validation.problems.filter((problem) => !/a task took/.test(problem)), []);
  assert.match(problemLine(await server.validate("arithmetc", 1).catch((error: unknown) => error)), /no family.*arithmetic/);
});

test("budgets of runs without paid calls are none", async () => {
  const person = new Person([]);
  await commands.budgets(server, person);
  assert.match(person.told[0]!, /no budget/);
});

test("keys: none and a wrong one are told in a line, a scope that lacks is named, no key is told", async () => {
  const [reading, all] = ["read", "admin"].map((scope) => served.command("api", "key", "add", scope, "--scope", scope));
  const keys = [reading, all].map((text) => /a0_[\w-]+/.exec(text!)![0]);
  const errors = [];
  for (const key of ["", "a0_wrong", keys[0]!]) {
    const other = serverAt(served.address, key);
    if (key === keys[0]) assert.ok((await other.runs()).length);
    errors.push(await other.cancel(finished, "").then(() => "", problemLine));
  }
  for (const line of errors) assert.doesNotMatch(line, /\n|a0_/);
  for (const line of errors.slice(0, 2)) assert.match(line, /key.*Agent0: Set Key/);
  assert.match(errors[2]!, /scope admin/);
  assert.ok((await serverAt(served.address, keys[1]).runs()).length);
});
