/** The table of cases of all clients, against a live server: this client gives what both Python clients give. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Agent0Error, MessageReader, connect } from "../dist/index.js";
import { SMALL, TABLE, pages, pythonOutcomes, served } from "./served.mjs";

/** @type {Awaited<ReturnType<typeof served>>} */
let place;
/** @type {import("../dist/index.js").Server} */
let server;
/** @type {import("../dist/index.js").Run} */
let run;

before(async () => {
  place = await served();
  server = connect(place.url);
  run = await server.start({ settings: SMALL, name: "whole" });
});
after(() => place.stop());

const CASES = TABLE.errors.filter((one) => !one.without?.typescript);
const id = (one) => `${one.call} ${JSON.stringify(one.with)}`;

/** What is handed over, `$…` written in JavaScript. */
function handed(one) {
  const words = { $nan: NaN, $almost: `${run.id.slice(0, -1)}_`, $long: { ...SMALL, "run.iterations": 500 } };
  return Object.fromEntries(Object.entries(one.with).map(([name, value]) => [name, words[value] ?? value]));
}

/** What the call of a case gives: plain JSON, and a run where it gives one. */
async function valueOf(one, on) {
  const given = handed(one);
  switch (one.call) {
    case "events": {
      const events = [];
      for await (const event of on.events(given)) events.push([event.seq, event.type, event.task, event.id]);
      return events;
    }
    case "runs":
      return (await on.runs(given)).map((each) => each.id);
    case "metrics":
      return on.metrics(...(given.columns ?? []));
    case "on":
      return on.on(given.callback);
    case "run":
      return on.run(given.name);
    case "pause":
    case "cancel":
      return on[one.call](given.reason);
    default:
      return on[one.call](given);
  }
}

/** What a case came to, as `tests.client_cases` prints it. @returns {Promise<{ gives?: any, error?: string, texts?: string[] }>} */
async function outcome(one) {
  try {
    return { gives: JSON.parse(JSON.stringify((await valueOf(one, one.on === "runs" ? server : run)) ?? null)) };
  } catch (error) {
    if (!(error instanceof Agent0Error)) throw error;
    return { error: error.name, texts: [error.what, error.why, error.fix] };
  }
}

test("errors are those of the table", async () => {
  for (const one of CASES) {
    const { error, texts = [] } = await outcome(one);
    assert.equal(error, one.error, id(one));
    const told = texts.join(" ");
    for (const text of one.says) assert.ok(told.replaceAll(": array of objects", "").includes(text), `${id(one)}: ${told}`);
    assert.ok(!told.includes("\n"));
  }
});

test("readings, and what the server says, are the same for Python by coroutines and without, a chat, and TypeScript", async () => {
  const clients = await pythonOutcomes(place.url, run.id);
  assert.deepEqual(clients.map(({ client }) => client), ["sync", "async", "chat"]);
  let same = 0;
  for (const one of [...CASES, ...TABLE.reads]) {
    const ours = await outcome(one);
    for (const { client, outcomes } of clients) {
      if (one.without?.[client]) continue;
      const theirs = outcomes.find(([name]) => name === id(one))?.[1];
      assert.equal(theirs?.error, ours.error, `${client}: ${id(one)}`);
      if (one.server || !one.error) assert.deepEqual(theirs, ours, `${client}: ${id(one)}`);
      same += 1;
    }
    if ("gives" in one) assert.deepEqual(ours.gives, one.gives, id(one));
  }
  const spared = CASES.filter((one) => one.without?.chat).length;
  assert.equal(same, 3 * (CASES.length + TABLE.reads.length) - spared);
});

test("what a person decides", async () => {
  const places = { runs: server, run };
  for (const one of TABLE.life) {
    try {
      const value = await valueOf(one, places[one.on]);
      assert.ok(!("error" in one), id(one));
      if ("gives" in one) assert.deepEqual(value, one.gives, id(one));
      if (one.as) places[one.as] = value;
    } catch (error) {
      if (!(error instanceof Agent0Error)) throw error;
      assert.equal(error.name, one.error, `${id(one)}: ${error.message}`);
      for (const text of one.says) assert.ok(error.message.includes(text), error.message);
    }
  }
});

test("an unknown option is named", async () => {
  // @ts-expect-error there is none
  await assert.rejects(run.fork({ wiat: false }), /There is no option wiat. Did you mean wait\?/);
  // @ts-expect-error there is none
  assert.throws(() => connect(place.url, { keys: "x" }), /There is no option keys/);
});

test("a run is followed to its end, and a callback sees each of its events once", async () => {
  const followed = await server.start({ settings: SMALL, name: "followed", wait: false });
  const seen = [];
  await Promise.all([
    followed.on((event) => seen.push(event.seq)),
    (async () => {
      for await (const event of followed.events({ type: "TaskAccepted", follow: true })) assert.equal(event.type, "TaskAccepted");
    })(),
  ]);
  assert.equal(await followed.wait(), "finished");
  const every = [];
  for await (const event of followed.events()) every.push(event.seq);
  assert.deepEqual(seen, every.slice(0, seen.length));
  assert.ok(seen.length > 20);
});

for (const [kind, stranger] of Object.entries(TABLE.strangers)) {
  test(`a stranger: ${kind}`, async () => {
    const there = await pages(stranger.pages);
    try {
      const asked = connect(there.url, { key: "agent0_secret" }).run();
      if ("gives" in stranger) {
        assert.equal((await asked).id, stranger.gives);
        return;
      }
      await assert.rejects(asked, (/** @type {any} */ error) => {
        assert.equal(error.name, stranger.error, error.message);
        for (const text of stranger.says) assert.ok(error.message.includes(text), error.message);
        assert.ok(!error.message.includes("agent0_secret") && !error.message.includes("\n"));
        return true;
      });
    } finally {
      await there.stop();
    }
  });
}

test("streams of the table, in one part and by single characters", () => {
  for (const { text, gives } of TABLE.streams) {
    for (const parts of [[text], [...text]]) {
      const reader = new MessageReader();
      let last = 0;
      const events = parts.flatMap((part) => reader.push(part)).map((message) => JSON.parse(message).seq);
      assert.deepEqual(events.filter((seq) => seq > last && (last = seq)), gives, JSON.stringify(text));
    }
  }
});
