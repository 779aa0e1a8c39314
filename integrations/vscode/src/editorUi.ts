/** How commands ask and tell in the editor. */

import * as vscode from "vscode";
import type { Ui } from "./commands";
import type { Panels } from "./panels";

/** The editor's dialogs; pages open in `panels`. */
export function editorUi(panels: Panels): Ui {
  return {
    input: async (prompt, value, check) =>
      vscode.window.showInputBox({ prompt, value, ignoreFocusOut: true, validateInput: check }),
    pick: async (title, items) => (await vscode.window.showQuickPick(items, { title, matchOnDetail: true }))?.value,
    confirm: async (message, action) =>
      (await vscode.window.showWarningMessage(message, { modal: true }, action)) === action,
    tell: async (message, ...buttons) => vscode.window.showInformationMessage(message, ...buttons),
    wait: async (title, work) =>
      vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title, cancellable: true },
        (_, token) => work(signalOf(token)),
      ),
    openRun: (run) => panels.openRun(run),
    openSubmission: (submission) => panels.openSubmission(submission),
    copy: async (text) => vscode.env.clipboard.writeText(text),
  };
}

/** An abort signal for one of the editor's tokens. */
export function signalOf(token: vscode.CancellationToken): AbortSignal {
  const abort = new AbortController();
  if (token.isCancellationRequested) abort.abort();
  token.onCancellationRequested(() => abort.abort());
  return abort.signal;
}
