/** The client of a server of Agent0. */
export {
  Agent0Error,
  AuthError,
  ConfigError,
  DependencyError,
  NotFoundError,
  OperationError,
  RequirementsError,
  RunFailedError,
  ServerVersionError,
} from "./errors.js";
export { OLDEST, type Answer, type Asked, type EventRow, type PathsOf, type Row } from "./link.js";
export { MessageReader } from "./sse.js";
export { connect, Run, Server } from "./runs.js";
export type { EventOptions, ForkOptions, RunFilter, RunProgress, Settings, StartOptions, Status } from "./runs.js";
export type { components, operations, paths } from "./api.js";
