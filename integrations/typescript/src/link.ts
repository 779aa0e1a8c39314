/** Requests to a server of Agent0: answers are typed by its description, streams resume, problems become errors. */
import type { components, paths } from "./api.js";
import { Agent0Error, AuthError, DependencyError, ServerVersionError, errorClass } from "./errors.js";
import { MessageReader } from "./sse.js";

/** The oldest version of a server that has every route which is asked for here. A later major version is refused. */
export const OLDEST = [0, 1] as const;
const [ANSWER_MS, SILENT_MS, AGAIN_MS, SHOWN] = [600_000, 45_000, 250, 200];
/** Statuses of what may be there a moment later. */
const BUSY = [429, 502, 503, 504];

/** What the API gives: columns by name. */
export type Row = { [column: string]: unknown };
/** An event as the log holds it, with its sequence; `type` may be one that this client never heard of. */
export type EventRow = Row & { seq: number; type: string; run: string; task: string; text: string };
export type Problem = Partial<components["schemas"]["ProblemDocument"]>;
type Method = "get" | "post";
/** The paths that the API has for a method. */
export type PathsOf<M extends Method> = { [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never }[keyof paths];
type Parameters<O, K extends string> = O extends { parameters: { [N in K]?: infer V } } ? NonNullable<V> : never;
type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } } ? { body: B } : { body?: never };
type PathValues<O> = [Parameters<O, "path">] extends [never] ? { path?: never } : { path: Parameters<O, "path"> };
/** What a request takes beside its path: values for the path's names, query, body. */
export type Asked<O> = PathValues<O> & Body<O> & { query?: Parameters<O, "query">; signal?: AbortSignal };
/** What a route answers when all is well. */
export type Answer<O> = O extends { responses: infer R }
  ? R[keyof R & (200 | 202)] extends { content: { "application/json": infer T } } ? T : never
  : never;
type Rest<O> = object extends Asked<O> ? [asked?: Asked<O>] : [asked: Asked<O>];
interface Plain {
  path?: Record<string, unknown>;
  query?: object;
  body?: unknown;
  signal?: AbortSignal;
}

class CutError extends Error {}

/** Asks one server. Nothing stays open between two requests. */
export class Link {
  readonly url: string;
  readonly #key: string;
  readonly #patienceMs: number;
  #checked: Promise<void> | undefined;

  constructor(url: string, key: string, patienceS: number) {
    this.url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#patienceMs = patienceS * 1000;
  }

  /** The answer to a GET of `path`, one of the API's description. */
  async get<P extends PathsOf<"get">>(path: P, ...rest: Rest<paths[P]["get"]>): Promise<Answer<paths[P]["get"]>> {
    return (await this.#ask("GET", path, (rest[0] ?? {}) as Plain)) as Answer<paths[P]["get"]>;
  }

  /** The answer to a POST, which counts once even where its answer is lost and it is sent again. */
  async post<P extends PathsOf<"post">>(path: P, ...rest: Rest<paths[P]["post"]>): Promise<Answer<paths[P]["post"]>> {
    return (await this.#ask("POST", path, (rest[0] ?? {}) as Plain)) as Answer<paths[P]["post"]>;
  }

  /**
   * Events behind the sequence `after` as they come, without an end. A stream that is cut goes on behind the last one
   * that came whole; none comes twice.
   */
  async *stream(query: Record<string, string>, after: number, signal?: AbortSignal): AsyncGenerator<EventRow, never> {
    let here = performance.now();
    for (;;) {
      let why = "it ended the stream";
      try {
        for await (const messages of this.#messages(query, after, signal)) {
          for (const message of messages) {
            const event = this.#event(message);
            if (event.seq <= after) continue;
            after = event.seq;
            yield event;
          }
          here = performance.now();
        }
      } catch (error) {
        if (!(error instanceof CutError)) throw error;
        why = error.message;
      }
      if (performance.now() > here + this.#patienceMs) {
        throw this.#away(`${why}, and did not come back in ${this.#patienceMs / 1000} s`);
      }
      await rest(AGAIN_MS, signal);
    }
  }

  /** Messages as they come, as many at once as there are; none at a sign of life. */
  async *#messages(query: Record<string, string>, after: number, signal?: AbortSignal): AsyncGenerator<string[]> {
    const ending = new AbortController();
    const leave = (): void => ending.abort(signal?.reason);
    signal?.addEventListener("abort", leave, { once: true });
    let silent = setTimeout(() => ending.abort(), SILENT_MS);
    try {
      signal?.throwIfAborted();
      await this.#requireVersion();
      const headers = { ...this.#headers(), Accept: "text/event-stream", "Last-Event-ID": String(after) };
      const answer = await fetch(this.#address("/v1/events", query), { headers, redirect: "manual", signal: ending.signal });
      if (BUSY.includes(answer.status)) throw new CutError(`it answers ${answer.status}`);
      if (!answer.ok) throw this.#problem("/v1/events", answer.status, await answer.text());
      const [reader, decoder, lines] = [answer.body!.getReader(), new TextDecoder(), new MessageReader()];
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        clearTimeout(silent);
        silent = setTimeout(() => ending.abort(), SILENT_MS);
        yield lines.push(decoder.decode(part.value, { stream: true }));
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof DependencyError) throw new CutError(error.why.replace(/\.$/, ""));
      if (error instanceof Agent0Error && BUSY.includes(error.status)) throw new CutError(`it answers ${error.status}`);
      if (error instanceof Agent0Error || error instanceof CutError) throw error;
      throw new CutError(ending.signal.aborted ? `it was silent for ${SILENT_MS / 1000} s` : reason(error));
    } finally {
      clearTimeout(silent);
      signal?.removeEventListener("abort", leave);
      ending.abort();
    }
  }

  #event(message: string): EventRow {
    try {
      const event = JSON.parse(message) as EventRow | null;
      if (Number.isSafeInteger(event?.seq)) return event!;
    } catch {
      // told below
    }
    throw this.#other(`It streams what is no event: ${message.slice(0, SHOWN)}.`);
  }

  async #ask(method: "GET" | "POST", template: string, asked: Plain): Promise<unknown> {
    await this.#requireVersion();
    const path = filled(template, asked.path ?? {});
    const headers: Record<string, string> = this.#headers();
    if (method === "POST") {
      headers["Content-Type"] = "application/json";
      headers["Idempotency-Key"] = randomId();
    }
    const body = asked.body === undefined ? null : JSON.stringify(asked.body);
    const { status, text } = await this.#exchange(this.#address(path, asked.query ?? {}), { method, headers, body }, asked.signal);
    if (status >= 200 && status < 300) return this.#parsed(path, text);
    throw this.#problem(path, status, text);
  }

  /** Status and text of an answer; a request that is cut is sent once more, as its key makes it one. */
  async #exchange(url: string, request: RequestInit, signal?: AbortSignal): Promise<{ status: number; text: string }> {
    const late = AbortSignal.timeout(ANSWER_MS);
    for (let again = true; ; again = false) {
      try {
        const answer = await fetch(url, { ...request, redirect: "manual", signal: signal ? AbortSignal.any([signal, late]) : late });
        return { status: answer.status, text: await answer.text() };
      } catch (error) {
        signal?.throwIfAborted();
        if (!again || late.aborted) throw this.#away(reason(error));
      }
    }
  }

  #requireVersion(): Promise<void> {
    this.#checked ??= this.#look().catch((error: unknown) => {
      this.#checked = undefined;
      throw error;
    });
    return this.#checked;
  }

  /** Look once whether a server of Agent0 answers whose version this client understands. */
  async #look(): Promise<void> {
    const { status, text } = await this.#exchange(this.#address("/version", {}), { headers: this.#headers() });
    if (BUSY.includes(status)) throw this.#problem("/version", status, text);
    const version = status === 200 ? String(this.#parsed("/version", text)["version"] ?? "") : "";
    const match = /^(\d+)\.(\d+)/.exec(version);
    if (match === null) throw this.#other(`It answers /version with status ${status}.`);
    const [major, minor] = [Number(match[1]), Number(match[2])];
    if (major > OLDEST[0]) {
      const fix = "Update this client: npm install agent0-train@latest";
      throw new ServerVersionError("The server is newer than this client.", `It is Agent0 ${version}.`, fix);
    }
    if (major < OLDEST[0] || minor < OLDEST[1]) {
      throw this.#old(`It is Agent0 ${version}; this client asks for what ${OLDEST.join(".")} has.`);
    }
  }

  #headers(): Record<string, string> {
    return this.#key ? { Authorization: `Bearer ${this.#key}` } : {};
  }

  #address(path: string, query: object): string {
    const pairs = Object.entries(query).flatMap(([name, value]) => (value === undefined || value === null ? [] : [[name, String(value)]]));
    return `${this.url}${path}${pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : ""}`;
  }

  #parsed(path: string, text: string): Row {
    try {
      const parsed: unknown = JSON.parse(text);
      if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Row;
    } catch {
      // told below
    }
    throw this.#other(`It answers ${path} with no JSON object: ${text.slice(0, SHOWN)}.`);
  }

  /** The error that a problem document describes; a key that it repeats is left out. */
  #problem(path: string, status: number, text: string): Agent0Error {
    const problem = this.#parsed(path, this.#key ? text.replaceAll(this.#key, "…") : text) as Problem;
    const [what, why] = [String(problem.title ?? ""), String(problem.detail ?? "")];
    let fix = String(problem.fix ?? "");
    if (status === 401) {
      fix = "Name a key of it: connect(URL, { key }). Who runs it makes one: agent0 api key add NAME";
      return new AuthError(what, why, fix, status);
    }
    if (status === 404 && !fix && why === "Not Found") return this.#old(`It has no ${path}.`);
    const slug = String(problem.type ?? "").split(":").pop()!;
    return new (errorClass(slug))(what || `It answers ${status}.`, why, fix, status);
  }

  #away(why: string): DependencyError {
    const fix = `Is the address right, and \`agent0 up\` running there? Its page: ${this.url}/runs`;
    return new DependencyError(`The server at ${this.url} is not available.`, `${why[0]!.toUpperCase()}${why.slice(1)}.`, fix);
  }

  #old(why: string): ServerVersionError {
    const fix = "Have it updated (pip install -U agent0-train), or use a client of its version.";
    return new ServerVersionError(`The server at ${this.url} is too old.`, why, fix);
  }

  #other(why: string): ServerVersionError {
    const text = this.#key ? why.replaceAll(this.#key, "…") : why;
    return new ServerVersionError(`No server of Agent0 answers at ${this.url}.`, text, "Name the address of `agent0 up`.");
  }
}

/** `template` with its names filled in. A name of dots alone would lead elsewhere: it becomes one that nothing has. */
function filled(template: string, values: Record<string, unknown>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(values[name] ?? "");
    return /^\.*$/.test(value) ? `${value}-` : encodeURIComponent(value);
  });
}

function reason(error: unknown): string {
  const cause = (error as { cause?: { message?: string; code?: string } }).cause;
  return cause?.message || cause?.code || (error as Error).message || "It did not answer";
}

/** A page that was not served over HTTPS has no `crypto.randomUUID`. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function rest(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", leave, { once: true });
    if (signal?.aborted) leave();
  });
}
