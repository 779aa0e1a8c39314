/** Errors with what happened, why, and what to do next, as Agent0's own; the message is one line. */

/** Controls, direction marks, halves of pairs, separators of lines: nothing that a terminal obeys. */
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]+/gu;

/** The base of all errors of this client. `status`: that of HTTP, 0 where no answer came. */
export class Agent0Error extends Error {
  readonly what: string;
  readonly why: string;
  readonly fix: string;
  readonly status: number;

  constructor(what: string, why = "", fix = "", status = 0) {
    const [cleanWhat, cleanWhy, cleanFix] = [what, why, fix].map((text) => text.replace(OBEYED, " ")) as [string, string, string];
    super([cleanWhat, cleanWhy, cleanFix].filter((text) => text.trim()).join(" "));
    this.name = new.target.name;
    this.what = cleanWhat;
    this.why = cleanWhy;
    this.fix = cleanFix;
    this.status = status;
  }
}

/** An argument, a setting or a row does not fit. */
export class ConfigError extends Agent0Error {}
/** A run, task, event or metric does not exist. */
export class NotFoundError extends Agent0Error {}
/** What was asked for cannot be done now. */
export class OperationError extends Agent0Error {}
/** The server asks for a key, or for one that may do more. */
export class AuthError extends Agent0Error {}
/** The server does not answer. */
export class DependencyError extends Agent0Error {}
/** A run needs what is not there; it has not begun. */
export class RequirementsError extends Agent0Error {}
/** A run ended without what it was for. */
export class RunFailedError extends Agent0Error {}
/** What answers is too old or too new a server of Agent0 for this client, or none at all. */
export class ServerVersionError extends OperationError {}

const KINDS: Record<string, new (what: string, why?: string, fix?: string, status?: number) => Agent0Error> = {
  config_invalid: ConfigError,
  not_found: NotFoundError,
  auth_denied: AuthError,
  auth_missing: AuthError,
  dependency_unreachable: RequirementsError,
  run_failed: RunFailedError,
};

/** The class of a problem whose `type` ends with `slug`. */
export function errorClass(slug: string): (typeof KINDS)[string] {
  return KINDS[slug] ?? OperationError;
}
