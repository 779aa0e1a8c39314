/** A server's runs as handles: how they go, what they measured, and what a person decides. */
import { nearest, requireKind, requireAll } from "./arguments.js";
import { ConfigError, NotFoundError } from "./errors.js";
import { Link, type EventRow, type Row } from "./link.js";

/** Type of an event -> the status that a run has behind it. */
const CHANGES: Record<string, Status> = {
  RunStarted: "running",
  RunResumed: "running",
  RunPaused: "paused",
  RunFailed: "failed",
  RunFinished: "finished",
  RunCancelled: "cancelled",
  RunDeleted: "deleted",
};
const OVER: readonly Status[] = ["finished", "failed", "cancelled", "deleted"];
const ENDS = Object.keys(CHANGES).filter((type) => OVER.includes(CHANGES[type]!));
const PAGE = 1000;

export type Status = "running" | "paused" | "failed" | "finished" | "cancelled" | "deleted";
export type Settings = { [key: string]: unknown };
/** Which events: of these types (by commas), of a task, behind a sequence; `follow`: those to come, too. */
export interface EventOptions {
  type?: string;
  task?: string;
  after?: number;
  follow?: boolean;
  signal?: AbortSignal;
}
export interface StartOptions {
  /** by name; the server's own where it is left out */
  profile?: string;
  /** others than the profile's, by dotted key */
  settings?: Settings;
  name?: string;
  /** rows with questions and answers, which are sent */
  questions?: Row[];
  heldout?: Row[];
  /** a checkpoint that the student begins with: RUN/CHECKPOINT */
  adapter?: string;
  wait?: boolean;
}
export interface ForkOptions {
  /** behind this event; 0: its end */
  at?: number;
  settings?: Settings;
  name?: string;
  wait?: boolean;
}
export interface RunFilter {
  tag?: string;
  profile?: string;
  status?: Status | "";
  text?: string;
  forks?: boolean;
  hidden?: boolean;
}
/** How far a run is: `share` of all tasks was asked for, from 0 to 1; null where nothing was scored or begun yet. */
export interface RunProgress {
  status: Status;
  iteration: number | null;
  iterations: number;
  share: number;
  tasks: number;
  accepted: number;
  attempts: number;
  tool_calls: number;
  events: number;
  seconds: number;
  validation: number | null;
  heldout_first: number | null;
  heldout_last: number | null;
}

/**
 * Name a server that `agent0 up` runs; it is asked at the first use. It asks for no `key` on its own machine.
 * `patienceS`: seconds that it may be away in the middle of a wait or a stream.
 */
export function connect(url = "http://127.0.0.1:8650", options: { key?: string; patienceS?: number } = {}): Server {
  requireKind("url", url);
  requireAll(options, "key", "patienceS");
  const { key = "", patienceS = 30 } = options;
  const parts = URL.canParse(url) ? new URL(url) : undefined;
  if (!parts || !/^https?:$/.test(parts.protocol) || parts.username || parts.password) {
    const shown = url.slice(0, 80).replace(/:\/\/.*@/, "://");
    throw new ConfigError(`'${shown}' is no address of a server.`, "", "Write one like http://127.0.0.1:8650");
  }
  if (!/^[!-~]*$/.test(key)) {
    throw new ConfigError("The key has characters that no key has.", "A space, a line's end or another alphabet.", "Copy it again.");
  }
  return new Server(new Link(url, key, patienceS));
}

/** A server of Agent0. Its runs are executed there, whatever becomes of this process. */
export class Server {
  /** Every route of the API, typed by its description. */
  readonly api: Link;

  constructor(api: Link) {
    this.api = api;
  }

  get url(): string {
    return this.api.url;
  }

  /** Start a run, and wait until it is over or return once it has begun. */
  async start(options: StartOptions = {}): Promise<Run> {
    requireAll(options, "profile", "settings", "name", "questions", "heldout", "adapter", "wait");
    const { settings = {}, wait = true, ...others } = options;
    const { run } = await this.api.post("/v1/runs", { body: { ...others, settings: texts(settings) } });
    const started = new Run(this.api, run);
    if (wait) await started.wait();
    return started;
  }

  /** The run of this id, unique beginning of an id, or name; the newest for LAST. */
  async run(name = "LAST"): Promise<Run> {
    requireKind("name", name);
    const { run } = await this.api.get("/v1/runs/{run}", { path: { run: known(name) } });
    return new Run(this.api, String(run));
  }

  /** Runs, newest first: those that fit; `hidden` and deleted ones, too, or `forks` alone. */
  async runs(options: RunFilter = {}): Promise<Run[]> {
    requireAll(options, "tag", "profile", "status", "text", "forks", "hidden");
    const { forks = false, ...query } = options;
    const rows = paged((after) => this.api.get("/v1/runs", { query: { ...query, limit: PAGE, ...(after ? { after } : {}) } }));
    const runs: Run[] = [];
    for await (const row of rows) if (row["parent"] || !forks) runs.push(new Run(this.api, String(row["run"])));
    return runs;
  }
}

/** A handle of one run; any number of handles stand beside each other. */
export class Run {
  readonly #api: Link;
  readonly id: string;

  constructor(api: Link, id: string) {
    this.#api = api;
    this.id = id;
  }

  /** running, paused, failed, finished, cancelled or deleted. */
  async status(): Promise<Status> {
    return CHANGES[(await this.#lastChange()).type]!;
  }

  /** What it came to, as `agent0 run show --json` prints it. */
  async overview(): Promise<Row> {
    return this.#api.get("/v1/runs/{run}", { path: { run: this.id } });
  }

  /** How far it is, in numbers. */
  async progress(): Promise<RunProgress> {
    const row = await this.overview();
    const points = (row["validation"] as Row[] | undefined) ?? [];
    const scores = points.map((point) => point["validation"]).filter((score) => score !== null && score !== undefined);
    const count = (name: string): number => Number(row[name] ?? 0);
    const score = (name: string): number | null => (row[name] ?? null) as number | null;
    const share = row["status"] === "finished" ? 1 : Math.min(1, count("tasks") / Math.max(1, count("tasks_asked")));
    return {
      status: row["status"] as Status,
      iteration: score("iteration"),
      iterations: count("iterations"),
      share,
      tasks: count("tasks"),
      accepted: count("accepted"),
      attempts: count("attempts"),
      tool_calls: count("tool_calls"),
      events: count("events"),
      seconds: count("wall_s"),
      validation: (scores.at(-1) ?? null) as number | null,
      heldout_first: score("heldout_first"),
      heldout_last: score("heldout_last"),
    };
  }

  /**
   * What it measured, every series or `columns` alone: a row for each iteration done (`step` 0: untrained), then one
   * for each step of the optimiser (`training/…`), null where one has no value.
   */
  async metrics(...columns: string[]): Promise<Row[]> {
    for (const column of columns) requireKind("columns", column);
    const rows = (await this.#api.get("/v1/runs/{run}/metrics", { path: { run: this.id } })).data;
    const names = Object.keys(rows[0] ?? {}).filter((name) => name !== "step");
    for (const column of columns.filter((name) => !names.includes(name))) {
      const many = names.length > 0 ? `It has ${names.length}: metrics() without a name gives all.` : "It has none yet.";
      throw new NotFoundError(`${this.id} has no metric '${column.slice(0, 80)}'.`, nearest(column, names), many);
    }
    const chosen = columns.length > 0 ? columns : names;
    const kinds = new Set(chosen.map(isTraining));
    return rows
      .filter((row) => Object.entries(row).some(([name, value]) => name !== "step" && value !== null && kinds.has(isTraining(name))))
      .map((row) => Object.fromEntries(["step", ...chosen].map((name) => [name, row[name]])));
  }

  /** How often it asked each row of its file of questions, and how many attempts at it were right. */
  async ledger(): Promise<Row[]> {
    const path = { run: this.id };
    const rows: Row[] = [];
    for await (const row of paged((after) => this.#api.get("/v1/runs/{run}/ledger", { path, query: { limit: PAGE, after } }))) rows.push(row);
    return rows;
  }

  /** Its events in the order of the log; `follow`: also those to come, until the run is over. */
  async *events(options: EventOptions = {}): AsyncGenerator<EventRow, void> {
    requireAll(options, "type", "task", "after", "follow", "signal");
    const { task = "", after = 0, signal } = options;
    const type = (options.type ?? "").split(",").map((name) => name.trim()).join(",");
    const follow = options.follow === true && !OVER.includes(await this.status());
    const names = type ? type.split(",") : [];
    const sent = follow && type ? [type, ...ENDS].join(",") : type;
    let count = 0;
    for await (const event of this.#feed(sent, follow ? "" : task, after, follow, signal)) {
      if ((names.length === 0 || names.includes(event.type)) && ["", event.task].includes(task)) {
        count += 1;
        yield event;
      }
      if (follow && ENDS.includes(event.type) && OVER.includes(await this.status())) break;
    }
    if (task && count === 0 && !((type || after) && (await this.#has(task)))) {
      throw new NotFoundError(`${this.id} has no task '${task.slice(0, 80)}'.`, "", "events() without a task gives all.");
    }
  }

  /** Wait until it is over or paused, or for `timeout` seconds; its status then. */
  async wait(options: { timeout?: number } = {}): Promise<Status> {
    requireAll(options, "timeout");
    let last = await this.#lastChange();
    const leaving = new AbortController();
    const timer = options.timeout === undefined ? undefined : setTimeout(() => leaving.abort(), Math.min(options.timeout * 1000, 2 ** 31 - 1));
    try {
      while (CHANGES[last.type] === "running") {
        for await (const event of this.#feed(Object.keys(CHANGES).join(","), "", last.seq, true, leaving.signal)) {
          last = event;
          break;
        }
      }
    } catch (error) {
      if (!leaving.signal.aborted) throw error;
    } finally {
      clearTimeout(timer);
    }
    return CHANGES[last.type]!;
  }

  /** Begin nothing new in it; what is in hand is finished and nothing is lost. */
  async pause(reason = ""): Promise<void> {
    requireKind("reason", reason);
    await this.#api.post("/v1/runs/{run}/pause", { path: { run: this.id }, body: { reason } });
  }

  /** Go on with it where it was paused or has failed, and wait until it is over. A finished one stays as it is. */
  async resume(options: { wait?: boolean } = {}): Promise<this> {
    requireAll(options, "wait");
    if ((await this.status()) !== "finished") await this.#api.post("/v1/runs/{run}/resume", { path: { run: this.id } });
    if (options.wait !== false) await this.wait();
    return this;
  }

  /** End it for good; its events stay. */
  async cancel(reason = ""): Promise<void> {
    requireKind("reason", reason);
    await this.#api.post("/v1/runs/{run}/cancel", { path: { run: this.id }, body: { reason } });
  }

  /** Start a run that goes on from this one under other settings, and wait until it is over. */
  async fork(options: ForkOptions = {}): Promise<Run> {
    requireAll(options, "at", "settings", "name", "wait");
    const { at = 0, settings = {}, name = "", wait = true } = options;
    const body = { at, settings: texts(settings), name };
    const forked = new Run(this.#api, (await this.#api.post("/v1/runs/{run}/forks", { path: { run: this.id }, body })).run);
    if (wait) await forked.wait();
    return forked;
  }

  /** Call `callback` with each of its events and with those to come, until it is over, it throws, or `signal` aborts. */
  async on(callback: (event: EventRow) => unknown, options: Omit<EventOptions, "task" | "follow"> = {}): Promise<void> {
    requireKind("callback", callback);
    requireAll(options, "type", "after", "signal");
    for await (const event of this.events({ ...options, follow: true })) await callback(event);
  }

  /** Events behind `after`: pages of what there is, then a stream of what comes. */
  async *#feed(type: string, task: string, after: number, follow: boolean, signal?: AbortSignal): AsyncGenerator<EventRow> {
    const query = { run: this.id, type, task };
    const stop = signal ? { signal } : {};
    const pages = paged((next) => this.#api.get("/v1/events", { query: { ...query, limit: PAGE, after: Number(next || after) }, ...stop }));
    for await (const row of pages) {
      after = Number(row["seq"]);
      yield row as EventRow;
    }
    if (follow) yield* this.#api.stream(query, after, signal);
  }

  async #has(task: string): Promise<boolean> {
    for await (const _ of this.#feed("", task, 0, false)) return true;
    return false;
  }

  /** The event that decides its status; the first end counts. */
  async #lastChange(): Promise<EventRow> {
    const changes: EventRow[] = [];
    for await (const event of this.#feed(Object.keys(CHANGES).join(","), "", 0, false)) changes.push(event);
    const last = changes.at(-1);
    if (last === undefined) throw new NotFoundError(`There is no run '${this.id}'.`, "", "`agent0 run list` shows them.");
    const end = changes.find((event) => ["finished", "cancelled"].includes(CHANGES[event.type]!));
    return end !== undefined && last.type !== "RunDeleted" ? end : last;
  }
}

/** Rows of all pages. An older server may leave `next` out where there is none. */
async function* paged(ask: (after: string) => Promise<{ data: Row[]; next?: string | null }>): AsyncGenerator<Row> {
  for (let next: string | null | undefined = ""; next !== null && next !== undefined; ) {
    const page = await ask(next);
    yield* page.data;
    next = page.next;
  }
}

/** The settings as they would be typed after --set: text as it is, other values as JSON. */
function texts(settings: Settings): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]));
}

function known(name: string): string {
  if (name.includes("/") || /^[\s.]*$/.test(name)) {
    throw new NotFoundError(`There is no run '${name.slice(0, 80)}'.`, "An id is letters, digits, '_' and '-'.");
  }
  return name;
}

function isTraining(name: string): boolean {
  return name.startsWith("training/");
}
