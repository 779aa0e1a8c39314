/** What is no server, or no longer one, is told in one line that says what to do. */

import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { createServer as createProxy, connect, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { originOf, problemLine, serverAt } from "../src/connection";
import { follow, rest } from "../src/live";

const KEY = "a0_secret";

/** The address of a server that answers by `listener` until the test ends. */
async function standIn(context: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  context.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An address at which nothing answers. */
async function closed(): Promise<string> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise((done) => server.close(done));
  return address;
}

async function lineOf(address: string): Promise<string> {
  const error = await serverAt(address, KEY, 0.1).runs().then(() => undefined, (error: unknown) => error);
  const line = problemLine(error);
  assert.doesNotMatch(line, /\n|a0_secret/);
  return line;
}

test("an old server, a new one, another program and none at all", async (context) => {
  const version = (version: string): RequestListener => (_, response) => response.end(JSON.stringify({ version }));
  const echo: RequestListener = (request, response) => response.end(`<h1>${request.headers.authorization}</h1>`);
  assert.match(await lineOf(await standIn(context, version("0.0.9"))), /too old.*0\.0\.9.*Have it updated/);
  assert.match(await lineOf(await standIn(context, version("1.0.0"))), /newer.*1\.0\.0.*Update this extension\.$/);
  assert.match(await lineOf(await standIn(context, echo)), /No server of Agent0 answers.*“Agent0: Set Server”/);
  assert.match(await lineOf(await closed()), /not available.*ECONNREFUSED.*agent0 up.*“Agent0: Set Server”/);
});

test("an address is scheme, host and port, and a key is kept by it", () => {
  assert.equal(originOf(" http://127.0.0.1:8650/ "), "http://127.0.0.1:8650");
  for (const wrong of ["", "ftp://a", "javascript:1", "http://me:secret@host"]) assert.throws(() => originOf(wrong), /no address of a server/);
});

/** A server of one run, in which an event happens whenever `happen` is called. */
async function happening(context: TestContext): Promise<{ address: string; happen: () => void }> {
  const streams = new Set<(seq: number) => void>();
  let last = 0;
  const address = await standIn(context, (request, response) => {
    const url = request.url ?? "";
    if (url.startsWith("/version")) return response.end(`{"version": "0.1.0"}`);
    if (url.startsWith("/v1/status")) return response.end(JSON.stringify({ tables: last }));
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (seq: number): void => void response.write(`id: ${seq}\ndata: {"seq": ${seq}, "run": "r-${seq}"}\n\n`);
    for (let seq = Number(request.headers["last-event-id"] ?? 0) + 1; seq <= last; seq++) send(seq);
    streams.add(send);
    response.write(": here\n\n");
    request.on("close", () => streams.delete(send));
  });
  return { address, happen: () => [(last += 1), ...streams].slice(1).forEach((send) => (send as (seq: number) => void)(last)) };
}

/** A way to `address` that can be cut. */
async function cuttable(context: TestContext, address: string): Promise<{ address: string; cut: () => void }> {
  const sockets = new Set<Socket>();
  const proxy = createProxy((near) => {
    const far = connect(Number(new URL(address).port), "127.0.0.1");
    for (const socket of [near, far]) sockets.add(socket.on("error", () => near.destroy()));
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
  const cut = (): void => sockets.forEach((socket) => socket.destroy());
  context.after(() => [proxy.close(), cut()]);
  return { address: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cut };
}

test("a stream that is cut goes on: every run that changed is told", async (context) => {
  const source = await happening(context);
  const way = await cuttable(context, source.address);
  const abort = new AbortController();
  const seen: string[] = [];
  const changed = (runs: Set<string>): void => {
    seen.push(...runs);
    if (seen.length === 3) return abort.abort();
    if (seen.length) way.cut();
    source.happen();
  };
  const problems: unknown[] = [];
  await follow(serverAt(way.address), { changed, state: (error) => void (error && problems.push(error)), rest }, abort.signal);
  assert.deepEqual(seen, ["r-1", "r-2", "r-3"]);
  assert.deepEqual(problems, []);
});
