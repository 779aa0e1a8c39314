/** The tree of runs and their tasks. */

import * as vscode from "vscode";
import type { RunRow, TaskRow } from "./rows";
import type { Server } from "./server";
import { runLine, taskLine, type TreeLine } from "./tree";

export interface Node {
  run: RunRow;
  task?: TaskRow;
}

export class RunsView implements vscode.TreeDataProvider<Node> {
  private readonly emitter = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.emitter.event;

  constructor(
    private readonly server: () => Server,
    private readonly failed: (error: unknown) => void,
  ) {}

  refresh(): void {
    this.emitter.fire();
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const item = itemOf(node.task ? taskLine(node.task) : runLine(node.run));
    const { run, task } = node;
    item.id = task ? `${run.run}/${task.task}` : run.run;
    if (task) item.command = { command: "agent0.openTask", title: "Open Task", arguments: [run.run, task.task] };
    else item.collapsibleState = vscode.TreeItemCollapsibleState.Collapsed;
    return item;
  }

  async getChildren(node?: Node): Promise<Node[]> {
    try {
      if (!node) return (await this.server().runs()).map((run) => ({ run }));
      return (await this.server().tasks(node.run.run)).map((task) => ({ run: node.run, task }));
    } catch (error) {
      this.failed(error);
      return [];
    }
  }
}

function itemOf(line: TreeLine): vscode.TreeItem {
  const item = new vscode.TreeItem(line.label);
  item.description = line.description;
  item.tooltip = line.tooltip;
  item.iconPath = new vscode.ThemeIcon(line.icon);
  item.contextValue = line.context;
  return item;
}
