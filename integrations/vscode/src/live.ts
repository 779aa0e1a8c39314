/** Follows a server: tells what changed, and in one line what is wrong. */

import type { EventRow } from "../../typescript/src/index";
import type { Server } from "./server";

export interface LiveHooks {
  /** The runs that something happened in since the last call; empty: all may have changed. */
  changed(runs: Set<string>): void;
  /** The server answers, or does not for `error`. */
  state(error?: unknown): void;
  /** A pause of so many milliseconds, or less where `signal` is aborted. */
  rest(milliseconds: number, signal: AbortSignal): Promise<void>;
}

const GATHER_MS = 1000;
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;

/** Resolves after `milliseconds`, or when `signal` is aborted. */
export function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) return done();
    const timer = setTimeout(end, milliseconds);
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    }
    signal.addEventListener("abort", end);
  });
}

/** Follow `server` until `signal` is aborted; where it does not answer, again and again with growing pauses. */
export async function follow(server: Server, hooks: LiveHooks, signal: AbortSignal): Promise<void> {
  let pause = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      const position = await server.position();
      pause = FIRST_RETRY_MS;
      hooks.state();
      hooks.changed(new Set());
      await gather(server.events(position, signal), hooks, signal);
    } catch (error) {
      if (signal.aborted) return;
      hooks.state(error);
    }
    await hooks.rest(pause, signal);
    pause = Math.min(LONGEST_RETRY_MS, pause * 2);
  }
}

/** Hand on which runs changed, those of a short time together. */
async function gather(events: AsyncIterable<EventRow>, hooks: LiveHooks, signal: AbortSignal): Promise<void> {
  let runs = new Set<string>();
  for await (const event of events) {
    const begins = runs.size === 0;
    runs.add(event.run);
    if (!begins) continue;
    void hooks.rest(GATHER_MS, signal).then(() => {
      const changed = runs;
      runs = new Set();
      if (!signal.aborted) hooks.changed(changed);
    });
  }
}
