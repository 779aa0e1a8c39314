/** The status bar's line on budgets. */

import { dollars, plain } from "./text";
import type { Budget } from "./rows";

/** The share of its cap that a budget has spent or reserved; 0 where it has none. */
function used(budget: Budget): number {
  return budget.cap ? (budget.spent + budget.reserved) / budget.cap : 0;
}

/** The budget that is nearest to its cap; without any cap the one that has spent most; undefined where there is none. */
export function tightest(budgets: Budget[]): Budget | undefined {
  return [...budgets].sort((a, b) => used(b) - used(a) || b.spent - a.spent)[0];
}

/** One budget in a line: what is spent of which cap, and what is reserved. */
export function budgetLine(budget: Budget): string {
  const cap = budget.cap === null ? "no cap" : `of ${dollars(budget.cap)}`;
  const reserved = budget.reserved ? `, ${dollars(budget.reserved)} reserved` : "";
  return `${plain(budget.scope, 20)} ${plain(budget.name, 60)}: ${dollars(budget.spent)} ${cap}${reserved}`;
}

/** What the status bar says: text, tooltip, and whether less than a tenth of a budget is left. */
export function budgetStatus(budgets: Budget[]): { text: string; tooltip: string; warns: boolean } {
  const budget = tightest(budgets);
  if (!budget) return { text: "Agent0: no budget", tooltip: "No call has cost money yet.", warns: false };
  const cap = budget.cap === null ? "" : ` of ${dollars(budget.cap)}`;
  const lines = budgets.slice(0, 20).map(budgetLine);
  return { text: `Agent0: ${dollars(budget.spent)}${cap}`, tooltip: lines.join("\n"), warns: used(budget) >= 0.9 };
}
