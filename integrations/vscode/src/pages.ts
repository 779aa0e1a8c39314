/** Pages of a run, an attempt and a submitted task as HTML. Every text goes through `escaped`; the policy lets nothing
 *  run or load but the one style sheet and the one script that are part of the page. */

import type { Attempt, AttemptRow, CurvePoint, RunOverview, Submission, TaskRow } from "./rows";
import { verdictWord } from "./rows";
import { escaped, percent } from "./text";

const STYLE = `
body { font-family: var(--vscode-font-family, sans-serif); color: var(--vscode-foreground); padding: 0 1rem 2rem; max-width: 72rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 1.6rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--vscode-widget-border, #8884); vertical-align: top }
th { font-weight: normal; opacity: .75 }
button { font: inherit; color: var(--vscode-textLink-foreground, #06c); background: none; border: 0; padding: 0; cursor: pointer; text-align: left; white-space: nowrap }
button:focus-visible { outline: 1px solid var(--vscode-focusBorder, #06c) }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; padding: .5rem .7rem; background: var(--vscode-textCodeBlock-background, #8881); border-radius: 4px }
.turn { border-left: 3px solid var(--vscode-widget-border, #8888); padding-left: .7rem; margin: .7rem 0 }
.turn.assistant { border-color: var(--vscode-charts-blue, #06c) } .turn.tool { border-color: var(--vscode-charts-orange, #c60) }
.role, .faint { opacity: .75 }
.right::before { content: "✓ "; color: var(--vscode-testing-iconPassed, #2a7) } .wrong::before { content: "✗ "; color: var(--vscode-testing-iconFailed, #c33) }
.notice { border-left: 3px solid var(--vscode-charts-yellow, #ca0); padding-left: .7rem }
svg { max-width: 36rem; width: 100%; height: auto } .line { fill: none; stroke: var(--vscode-charts-blue, #06c); stroke-width: 2 }
.dot { fill: var(--vscode-charts-blue, #06c) } .bar { stroke: var(--vscode-charts-blue, #06c); opacity: .5 }
.axis { stroke: var(--vscode-foreground); opacity: .3 } text { fill: var(--vscode-foreground); font-size: 11px }
`;

const SCRIPT = `
const editor = acquireVsCodeApi();
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-open]");
  if (button) editor.postMessage({ open: button.dataset.open, name: button.dataset.name });
});
window.addEventListener("message", (event) => { document.querySelector("main").innerHTML = event.data.body; });
`;

/** A whole page around `body`, which is HTML already; `nonce` is random and new for each page. */
export function wholePage(title: string, body: string, nonce: string): string {
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${escaped(title)}</title><style nonce="${nonce}">${STYLE}</style></head>
<body><main>${body}</main><script nonce="${nonce}">${SCRIPT}</script></body></html>`;
}

function table(head: string[], rows: string[][], empty: string): string {
  if (!rows.length) return `<p class="faint">${escaped(empty)}</p>`;
  const heads = head.map((name) => `<th scope="col">${escaped(name)}</th>`).join("");
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("");
  return `<table><thead><tr>${heads}</tr></thead><tbody>${body}</tbody></table>`;
}

function opens(kind: "attempt" | "task", name: string, text: string): string {
  return `<button data-open="${kind}" data-name="${escaped(name)}">${escaped(text)}</button>`;
}

function verdict(correct: number | boolean | null): string {
  const word = verdictWord(correct);
  return `<span class="${word}">${word}</span>`;
}

function interval(low: number | null, high: number | null): string {
  return low === null || high === null ? "" : ` (${percent(low)} to ${percent(high)})`;
}

function iterationName(iteration: number): string {
  return iteration < 0 ? "untrained" : String(iteration);
}

const WIDTH = 480;
const HEIGHT = 160;

/** The learning curve as a picture: validation accuracy by iteration with 95 % intervals. */
export function curve(points: CurvePoint[]): string {
  const known = points.filter((point) => point.validation !== null);
  if (!known.length) return `<p class="faint">Nothing is evaluated yet.</p>`;
  const x = (index: number): number => 40 + (index * (WIDTH - 70)) / Math.max(1, known.length - 1);
  const y = (share: number): number => HEIGHT - 25 - share * (HEIGHT - 40);
  const dots = known.map((point, index) => {
    const share = point.validation ?? 0;
    const bar = `<line class="bar" x1="${x(index)}" x2="${x(index)}" y1="${y(point.lower95 ?? share)}" y2="${y(point.upper95 ?? share)}"/>`;
    const text = `${iterationName(point.iteration)}: ${percent(share)}${interval(point.lower95, point.upper95)}`;
    return `${bar}<circle class="dot" cx="${x(index)}" cy="${y(share)}" r="3.5"><title>${escaped(text)}</title></circle>`;
  });
  const line = known.map((point, index) => `${x(index)},${y(point.validation ?? 0)}`).join(" ");
  const names = [0, known.length - 1].map((index) => {
    const name = iterationName(known[index]?.iteration ?? 0);
    return `<text x="${x(index)}" y="${HEIGHT - 6}" text-anchor="middle">${escaped(name)}</text>`;
  });
  const last = known[known.length - 1];
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="validation accuracy, last ${percent(last?.validation)}">
<line class="axis" x1="40" x2="${WIDTH - 20}" y1="${y(0)}" y2="${y(0)}"/><line class="axis" x1="40" x2="${WIDTH - 20}" y1="${y(1)}" y2="${y(1)}"/>
<text x="34" y="${y(0) + 4}" text-anchor="end">0%</text><text x="34" y="${y(1) + 4}" text-anchor="end">100%</text>
<polyline class="line" points="${line}"/>${dots.join("")}${(known.length > 1 ? names : names.slice(0, 1)).join("")}</svg>`;
}

function facts(run: RunOverview): string {
  const parts = [
    `profile ${run.profile}`,
    run.iterations ? `${run.iterations} iterations` : "",
    run.iteration === null ? "" : `iteration ${iterationName(run.iteration)} is the last begun`,
    `${run.tasks ?? 0} tasks`,
    `${run.attempts ?? 0} attempts`,
    run.waits_for ? `waits for ${run.waits_for}` : "",
  ];
  return escaped(parts.filter(Boolean).join(" · "));
}

function notices(run: RunOverview): string {
  const alarms = run.alarms.map((alarm) => `<p class="notice">${escaped(alarm.message)}</p>`).join("");
  if (!run.why) return alarms;
  const mend = run.why.mend ? `<pre>${escaped(run.why.mend)}</pre>` : "";
  return `${alarms}<p class="notice">${escaped(run.why.conclusion)}</p>${mend}`;
}

/** The page of a run: what it came to, its curve, test scores, newest tasks. */
export function runBody(run: RunOverview, tasks: TaskRow[]): string {
  const scores = run.test.map((score) => [
    escaped(score.forced_tool ? `${score.checkpoint}, tool forced` : score.checkpoint),
    `${percent(score.accuracy)}${interval(score.lower95, score.upper95)}`,
    escaped(score.n),
  ]);
  const rows = tasks.map((task) => [
    opens("task", task.task, task.task),
    escaped(task.family),
    escaped(task.status),
    escaped(percent(task.solve_rate)),
    escaped(task.question ?? task.reason),
  ]);
  return `<h1>${escaped(run.run)} <span class="faint">${escaped(run.status)}</span></h1><p>${facts(run)}</p>${notices(run)}
<h2>Validation accuracy</h2>${curve(run.validation)}
<h2>Test</h2>${table(["checkpoint", "accuracy (95%)", "items"], scores, "The test comes at the end, once.")}
<h2>Tasks</h2>${table(["task", "family", "status", "solved", "question"], rows, "No task was asked for yet.")}`;
}

/** The page of a task: its question, and its attempts, which lead to their transcripts. */
export function taskBody(task: TaskRow & { attempts: AttemptRow[] }): string {
  const rows = task.attempts.map((attempt) => [
    opens("attempt", attempt.attempt, attempt.attempt),
    verdict(attempt.correct),
    escaped(attempt.answer),
    escaped(attempt.reward?.toFixed(2)),
    escaped(attempt.tool_calls),
  ]);
  return `<h1>${escaped(task.task)} <span class="faint">${escaped(task.family)} · ${escaped(task.status)}</span></h1>
<pre>${escaped(task.question ?? task.reason)}</pre>
<h2>Attempts</h2>${table(["attempt", "verdict", "answer", "reward", "tool calls"], rows, "There is no attempt.")}`;
}

function transcript(attempt: Attempt): string {
  const turns = attempt.transcript.map((message) => {
    const thinking = message.thinking ? `<pre class="faint">${escaped(message.thinking)}</pre>` : "";
    const name = message.name ? ` ${escaped(message.name)}` : "";
    const known = ["system", "user", "assistant", "tool"].includes(message.role) ? message.role : "";
    return `<div class="turn ${known}"><span class="role">${escaped(message.role)}${name}</span>${thinking}<pre>${escaped(message.content)}</pre></div>`;
  });
  return turns.join("") || `<p class="faint">Nothing was said.</p>`;
}

function verdicts(attempt: Attempt): string {
  const rows = attempt.verdicts.map((decided) => [
    escaped(decided.verifier),
    verdict(decided.correct),
    escaped(decided.expected),
    escaped(decided.got),
    escaped(decided.reason),
  ]);
  return table(["verifier", "verdict", "expected", "got", "reason"], rows, "Nothing was decided.");
}

function receipts(attempt: Attempt): string {
  const rows = (attempt.receipts ?? []).flatMap((receipt) =>
    receipt.parts.map((part) => [escaped(part.name), escaped(part.value), escaped(part.weight), escaped(part.worth)]),
  );
  return rows.length ? `<h2>Reward</h2>${table(["part", "value", "weight", "worth"], rows, "")}` : "";
}

/** The page of an attempt: transcript, verdicts, reward by its parts. */
export function attemptBody(attempt: Attempt): string {
  return `<h1>${escaped(attempt.attempt)} ${verdict(attempt.correct)}</h1>
<p class="faint">${escaped(attempt.run)} · ${escaped(attempt.student)} · ${escaped(attempt.model)}</p>
${transcript(attempt)}<h2>Verdicts</h2>${verdicts(attempt)}${receipts(attempt)}`;
}

/** The page of a submitted task: what became of it, and its transcript where there is one. */
export function submissionBody(submission: Submission): string {
  const head = `<h1>${escaped(submission.submission)} ${verdict(submission.correct)}</h1>
<p class="faint">${escaped(submission.student)} of ${escaped(submission.source)} · ${escaped(submission.status)} ${escaped(submission.reason)}</p>
<pre>${escaped(submission.question)}</pre>`;
  const solution = submission.solution;
  return solution ? `${head}${transcript(solution)}<h2>Verdicts</h2>${verdicts(solution)}` : head;
}
