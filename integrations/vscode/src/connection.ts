/** The client's connection to a server, and its errors in the words of the editor. */

import { AuthError, connect, DependencyError, ServerVersionError } from "../../typescript/src/index";
import { Server } from "./server";

/** Seconds that a server may be away before the status bar says so; the extension goes on asking. */
const PATIENCE_S = 5;

/** The server at `address`. Throws where that is no address, or `key` none. */
export function serverAt(address: string, key = "", patienceS = PATIENCE_S): Server {
  return new Server(connect(address.trim(), { key, patienceS }).api);
}

/** `address` as keys are stored by it: scheme, host and port. Throws where it is none. */
export function originOf(address: string): string {
  return new URL(serverAt(address).api.url).origin;
}

/** What is wrong and what to do about it in the editor, in one line. */
export function problemLine(error: unknown): string {
  if (error instanceof AuthError && error.status === 401) return `${error.what} ${error.why} Give it by “Agent0: Set Key”.`;
  if (error instanceof DependencyError) {
    return `${error.what} ${error.why} Start it by \`agent0 up\`, or name another by “Agent0: Set Server”.`;
  }
  if (error instanceof ServerVersionError) {
    const fix = error.what.includes("newer") ? "Update this extension." : `${error.fix} Another one: “Agent0: Set Server”.`;
    return `${error.what} ${error.why} ${fix}`;
  }
  return (error as Error).message;
}
