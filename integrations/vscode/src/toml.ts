/** Completion and meanings of settings in agent0.toml, whatever language the file is opened as. */

import * as vscode from "vscode";
import { meaning, proposals, type Proposal, type Schema } from "./settingsCompletion";

const FILES: vscode.DocumentSelector = { pattern: "**/agent0.toml" };
const KINDS = {
  table: vscode.CompletionItemKind.Module,
  key: vscode.CompletionItemKind.Property,
  value: vscode.CompletionItemKind.Value,
};

/** Register completion and hovers; the schema is read when it is first needed. */
export function registerToml(context: vscode.ExtensionContext): void {
  let schema: Promise<Schema> | undefined;
  const read = (): Promise<Schema> => (schema ??= readSchema(context.extensionUri));
  const completion = { provideCompletionItems: async (document: vscode.TextDocument, at: vscode.Position) => {
    const before = document.lineAt(at.line).text.slice(0, at.character);
    return proposals(await read(), above(document, at.line), before).map((proposal, index) => itemOf(proposal, index));
  } };
  const hover = { provideHover: async (document: vscode.TextDocument, at: vscode.Position) => {
    const text = meaning(await read(), above(document, at.line), document.lineAt(at.line).text);
    return text ? new vscode.Hover(new vscode.MarkdownString().appendText(text)) : undefined;
  } };
  context.subscriptions.push(
    vscode.languages.registerCompletionItemProvider(FILES, completion, ".", "[", "="),
    vscode.languages.registerHoverProvider(FILES, hover),
  );
}

async function readSchema(folder: vscode.Uri): Promise<Schema> {
  const bytes = await vscode.workspace.fs.readFile(vscode.Uri.joinPath(folder, "out", "agent0.schema.json"));
  return JSON.parse(new TextDecoder().decode(bytes)) as Schema;
}

function above(document: vscode.TextDocument, line: number): string[] {
  return Array.from({ length: line }, (_, index) => document.lineAt(index).text);
}

function itemOf(proposal: Proposal, index: number): vscode.CompletionItem {
  const item = new vscode.CompletionItem(proposal.label, KINDS[proposal.kind]);
  item.insertText = proposal.insert;
  item.detail = proposal.detail;
  item.documentation = proposal.about;
  item.sortText = String(index).padStart(4, "0");
  return item;
}
