/** An Agent0 server as the extension sees it. */

import type { EventRow, Row, Server as Client } from "../../typescript/src/index";
import type { Attempt, AttemptRow, Budget, Diagnosis, FamilyRow, FamilyTasks, RunOverview, RunRow, Submission, TaskRow, Validation } from "./rows";

interface Page {
  data: Row[];
  next?: string | null;
}

type TaskPage = TaskRow & { attempts: AttemptRow[] };

interface Submitted {
  run: string;
  seq: number;
}

/** Events behind which a list of runs, a page or a budget may differ. */
export const NOTED = [
  ...["RunStarted", "RunPaused", "RunResumed", "RunCancelled", "RunFailed", "RunFinished", "RunDeleted", "RunLabelled"],
  ...["IterationMeasured", "CheckpointEvaluated", "CheckpointPromoted", "CheckpointRejected", "CheckpointTrained"],
  ...["TaskProposed", "TaskAccepted", "TaskRejected", "AlarmRaised", "ReactionFailed", "BudgetChanged"],
].join(",");
const SETTLED = "ResultVerified,ReactionFailed,ReactionDropped";

export class Server {
  /** `api` is the client's; its rows are read as `rows.ts` has them. */
  constructor(readonly api: Client["api"]) {}

  /** The newest 100 runs. */
  async runs(): Promise<RunRow[]> {
    return rowsOf<RunRow>(await this.api.get("/v1/runs", { query: { limit: 100 } }));
  }

  async run(run: string): Promise<RunOverview> {
    return rowOf<RunOverview>(await this.api.get("/v1/runs/{run}", { path: { run } }));
  }

  async why(run: string): Promise<Diagnosis> {
    return rowOf<Diagnosis>(await this.api.get("/v1/runs/{run}/why", { path: { run } }));
  }

  /** The tasks of a run in the order they were asked for, `most` at most. */
  async tasks(run: string, most = 200): Promise<TaskRow[]> {
    const rows: TaskRow[] = [];
    for (let after: string | null | undefined = ""; typeof after === "string" && rows.length < most; ) {
      const query = { limit: Math.min(200, most - rows.length), ...(after ? { after } : {}) };
      const page: Page = await this.api.get("/v1/runs/{run}/tasks", { path: { run }, query });
      rows.push(...rowsOf<TaskRow>(page));
      after = page.next;
    }
    return rows;
  }

  async task(run: string, task: string): Promise<TaskPage> {
    return rowOf<TaskPage>(await this.api.get("/v1/runs/{run}/tasks/{task}", { path: { run, task } }));
  }

  async attempt(run: string, attempt: string): Promise<Attempt> {
    return rowOf<Attempt>(await this.api.get("/v1/runs/{run}/trajectories/{attempt}", { path: { run, attempt } }));
  }

  /** The task families that the server knows. */
  async families(): Promise<FamilyRow[]> {
    return rowsOf<FamilyRow>(await this.api.get("/v1/families", { query: { limit: 200 } }));
  }

  async family(family: string): Promise<FamilyTasks> {
    return rowOf<FamilyTasks>(await this.api.get("/v1/families/{family}", { path: { family } }));
  }

  /** Have the server validate a level of a family. */
  async validate(family: string, level: number): Promise<Validation> {
    return rowOf<Validation>(await this.api.get("/v1/families/{family}/validation", { path: { family }, query: { level } }));
  }

  async budgets(): Promise<Budget[]> {
    return rowsOf<Budget>(await this.api.get("/v1/router/budgets"));
  }

  /** Submit a task to the student of a run; returns its name, and the event behind which to wait for its verdict. */
  async submit(question: string, model: string, expected: string, domain = ""): Promise<Submitted> {
    return this.api.post("/v1/tasks", { body: { question, model, expected, domain } });
  }

  async submission(task: string): Promise<Submission> {
    return rowOf<Submission>(await this.api.get("/v1/tasks/{task}", { path: { task } }));
  }

  /** A submitted task once there is a verdict, or a failure; undefined where `signal` is aborted before. */
  async settled(submitted: Submitted, signal: AbortSignal): Promise<Submission | undefined> {
    try {
      const query = { run: submitted.run, type: SETTLED };
      for await (const _ of this.api.stream(query, submitted.seq, signal)) return await this.submission(submitted.run);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return undefined;
  }

  /** Fork a run behind the event `at` (0: its end); returns the fork's id. */
  async fork(run: string, at: number, settings: Record<string, string>): Promise<string> {
    return (await this.api.post("/v1/runs/{run}/forks", { path: { run }, body: { at, settings, name: "" } })).run;
  }

  async cancel(run: string, reason: string): Promise<void> {
    await this.api.post("/v1/runs/{run}/cancel", { path: { run }, body: { reason } });
  }

  /** The position of the tables, behind which new events come. */
  async position(): Promise<number> {
    return Number((await this.api.get("/v1/status"))["tables"] ?? 0);
  }

  /** What happens behind `after`, as far as it is to be seen in the editor. */
  events(after: number, signal: AbortSignal): AsyncIterable<EventRow> {
    return this.api.stream({ type: NOTED }, after, signal);
  }
}

function rowOf<T>(row: Row): T {
  return row as T;
}

function rowsOf<T>(page: Page): T[] {
  return page.data as T[];
}
