/** Streams that are cut, servers that are away, silent or restarted: no event twice, none lost, one line that says what to do. */
import assert from "node:assert/strict";
import { connect as dial, createServer } from "node:net";
import { after, before, test } from "node:test";
import { connect } from "../dist/index.js";
import { SMALL, pages, served, standIn } from "./served.mjs";

/** @type {Awaited<ReturnType<typeof served>>} */
let place;
let id = "";
const whole = [];
let longest = 0;

before(async () => {
  place = await served();
  const run = await connect(place.url).start({ settings: SMALL });
  id = run.id;
  for await (const event of run.events()) {
    whole.push(event.seq);
    longest = Math.max(longest, JSON.stringify(event).length);
  }
});
after(() => place.stop());

/** A proxy of the server that cuts each connection after `size` bytes of an answer. */
async function cutting(size) {
  const there = new URL(place.url);
  const proxy = { cuts: 0, url: "", stop: () => {} };
  const sockets = new Set();
  const server = createServer((near) => {
    const far = dial(Number(there.port), there.hostname);
    let left = size;
    for (const [socket, other] of [[near, far], [far, near]]) {
      sockets.add(socket);
      socket.on("error", () => other.destroy()).on("close", () => other.destroy());
    }
    near.pipe(far);
    far.on("data", (part) => {
      near.write(part.subarray(0, left));
      left -= part.length;
      if (left <= 0) {
        proxy.cuts += 1;
        near.end(() => near.destroy());
        far.destroy();
      }
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  proxy.url = `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
  proxy.stop = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return proxy;
}

test("a stream that is cut in the middle goes on with no event twice", async () => {
  for (const size of [4 * longest + 4007, 10 * longest]) {
    const proxy = await cutting(size);
    const seen = [];
    for await (const event of connect(proxy.url).api.stream({ run: id }, 0)) {
      seen.push(event.seq);
      if (seen.length === whole.length) break;
    }
    proxy.stop();
    assert.deepEqual(seen, whole);
    assert.ok(proxy.cuts > 0);
  }
});

test("a server that does not come back ends the stream with what to do", async () => {
  let streams = 0;
  const there = await standIn((request, response) => {
    if (request.url === "/version") return response.end('{"version": "0.1.0"}');
    streams += 1;
    if (streams > 1) return request.socket.destroy();
    return response.end('data: {"seq": 1}\n\nid: 2\ndata: {"seq": 2');
  });
  const stream = connect(there.url, { key: "agent0_secret", patienceS: 0.1 }).api.stream({}, 0);
  assert.equal((await stream.next()).value?.seq, 1);
  await assert.rejects(stream.next(), (/** @type {any} */ error) => {
    assert.equal(error.name, "DependencyError");
    assert.match(error.message, /did not come back in 0\.1 s.*`agent0 up`/);
    assert.ok(!error.message.includes("secret"));
    return true;
  });
  await there.stop();
});

test("a server that is full for a moment is asked again, and what it repeats comes once", async () => {
  const answers = [[503, "{}"], [200, 'data: {"seq": 1}\n\ndata: {"seq": 1}\n\n'], [429, "{}"], [200, 'data: {"seq": 1}\n\ndata: {"seq": 2}\n\n']];
  const cursors = [];
  const there = await standIn((request, response) => {
    if (request.url === "/version") return response.end('{"version": "0.1.0"}');
    cursors.push(request.headers["last-event-id"]);
    const [status, text] = answers.shift() ?? [200, ""];
    return response.writeHead(Number(status)).end(text);
  });
  const stream = connect(there.url).api.stream({}, 0);
  assert.deepEqual([(await stream.next()).value?.seq, (await stream.next()).value?.seq], [1, 2]);
  assert.deepEqual(cursors, ["0", "0", "1", "1"]);
  await stream.return(/** @type {never} */ (undefined));
  await there.stop();
});

test("whoever leaves a stream is gone at the server, and who aborts gets the reason", async () => {
  const leaving = new AbortController();
  const stream = connect(place.url).api.stream({ run: id }, whole.at(-1), leaving.signal);
  const waiting = stream.next();
  setTimeout(() => leaving.abort(new Error("enough")), 50);
  await assert.rejects(waiting, /enough/);
});

test("a server that is not there, and one that asks for another key, are one line", async () => {
  const gone = await pages({});
  await gone.stop();
  await assert.rejects(connect(gone.url, { key: "agent0_secret" }).run(), (/** @type {any} */ error) => {
    assert.equal(error.name, "DependencyError");
    assert.match(error.message, /^The server at http:\S+ is not available\. .*`agent0 up`[^\n]*$/);
    assert.ok(!error.message.includes("secret"));
    return true;
  });
  for (const key of ["agent0_secret\n", "agent0 secret", "agent0_s\u00e9cret"]) {
    assert.throws(() => connect(place.url, { key }), (/** @type {any} */ error) => error.name === "ConfigError" && !error.message.includes("cret"));
  }
  for (const url of ["", "localhost:8650", "ftp://x", "http://user:secret@host"]) {
    assert.throws(() => connect(url), (/** @type {any} */ error) => /no address of a server/.test(error.message) && !error.message.includes("secret"));
  }
});

test("a wrong key says how to get one", async () => {
  const problem = '{"type": "urn:agent0:problem:auth_missing", "title": "This server asks for a key.", "detail": "The key that came is not known."}';
  const there = await pages({ "/version": [200, '{"version": "0.1.0"}'], "/v1/runs/LAST": [401, problem] });
  await assert.rejects(connect(there.url, { key: "agent0_wrong" }).run(), /^AuthError: This server asks for a key\. .*agent0 api key add NAME$/);
  await there.stop();
});

test("nothing is sent to where an answer leads", async () => {
  let reached = false;
  const elsewhere = await standIn((_, response) => {
    reached = true;
    response.end("{}");
  });
  const there = await standIn((_, response) => response.writeHead(307, { Location: `${elsewhere.url}/version` }).end());
  await assert.rejects(connect(there.url, { key: "agent0_secret" }).run(), /No server of Agent0 answers/);
  assert.ok(!reached);
  await Promise.all([there.stop(), elsewhere.stop()]);
});

test("a post whose answer is lost is sent once more under the same key", async () => {
  const keys = [];
  const there = await standIn((request, response) => {
    if (request.url === "/version") return response.end('{"version": "0.1.0"}');
    keys.push(request.headers["idempotency-key"]);
    return keys.length === 1 ? request.socket.destroy() : response.writeHead(202).end('{"run": "r1", "event": "e", "seq": 1}');
  });
  const { run } = await connect(there.url).api.post("/v1/runs/{run}/pause", { path: { run: "r1" }, body: { reason: "" } });
  assert.equal(run, "r1");
  assert.ok(keys.length === 2 && keys[0] && keys[0] === keys[1]);
  await there.stop();
});

test("a server one version newer: fields and events that nobody heard of pass, what is left out is null", async () => {
  const started = { seq: 1, type: "RunStarted", run: "r1", task: "-", text: "", mood: "good" };
  const dreamt = { seq: 2, type: "RunDreamed", run: "r1", task: "-", text: "" };
  const there = await pages({
    "/version": [200, '{"version": "0.2.0"}'],
    "/v1/runs/r1": [200, '{"run": "r1", "status": "running", "mood": "good"}'],
    "/v1/events": [200, JSON.stringify({ data: [started, dreamt] })],
  });
  const run = await connect(there.url).run("r1");
  const progress = await run.progress();
  assert.deepEqual([progress.status, progress.share, progress.validation, progress.iteration], ["running", 0, null, null]);
  const events = [];
  for await (const event of run.events()) events.push(event);
  assert.deepEqual(events, [started, dreamt]);
  await there.stop();
});
