// Charts of many runs tell their values: where the pointer is, or by arrow keys. The values are those of the page's twin.
"use strict";
const readings = new WeakMap(); // by figure: its chart of the twin, which is asked for once
const places = new WeakMap(); // by figure: what the arrow keys have come to
const chartOf = (figure) => {
  if (!readings.has(figure)) {
    const twin = fetch(document.querySelector("a.twin").href).then((answer) => answer.json());
    readings.set(figure, twin.then((page) => page.drawn[Number(figure.dataset.chart)]));
  }
  return readings.get(figure);
};
const told = (chart, value) => chart.share ? `${(100 * value).toFixed(1)}%` : String(Number(value.toPrecision(4)));
const nearest = (xs, x) => xs.reduce((best, other, n) => (Math.abs(other - x) < Math.abs(xs[best] - x) ? n : best), 0);
const shareOf = (axis, value) => (value - axis.low) / (axis.high - axis.low);
function lit(lines) {
  for (const part of document.querySelectorAll("[data-line]")) part.classList.toggle("lit", lines.includes(part.dataset.line));
  for (const svg of document.querySelectorAll("figure.runs .plot > svg")) svg.classList.toggle("lines-dim", lines.length > 0);
}
function silent(figure) {
  figure.querySelectorAll(".tip, .hairline").forEach((part) => part.remove());
  lit([]);
}
// What the lines have at x, the one nearest to `near` (a share of the height) first.
function tell(figure, chart, x, near, line) {
  const margin = (chart.x.high - chart.x.low) / 50;
  const rows = chart.lines.map((of, number) => ({ of, number, n: nearest(of.x, x) }))
    .filter(({ of, n }) => of.x.length && x > of.x[0] - margin && x < of.x[of.x.length - 1] + margin && Math.abs(of.x[n] - x) < 5 * margin)
    .map((row) => ({ ...row, far: row.number === line ? -1 : Math.abs(shareOf(chart.y, row.of.y[row.n]) - near) }))
    .sort((a, b) => a.far - b.far);
  silent(figure);
  if (!rows.length) return;
  const [first] = rows;
  const [tip, head, cross] = ["div", "p", "div"].map((name) => document.createElement(name));
  [tip.className, cross.className, tip.role] = ["tip", "hairline", "status"];
  head.textContent = `${Number(first.of.x[first.n].toPrecision(6)).toLocaleString("en")} ${chart.x.title}`;
  tip.append(head);
  for (const row of rows.slice(0, 8).sort((a, b) => b.of.y[b.n] - a.of.y[a.n])) {
    const [part, name, value] = ["div", "span", "b"].map((tag) => document.createElement(tag));
    const swatch = document.querySelector(`.legend [data-line="${row.number}"] svg`)?.cloneNode(true);
    [name.textContent, value.textContent] = [row.of.run, told(chart, row.of.y[row.n])];
    if (row === first) part.className = "near";
    part.append(...(swatch ? [swatch] : []), name, value);
    tip.append(part);
  }
  const [plot, svg] = [figure.querySelector(".plot"), figure.querySelector("svg")];
  const [box, inner] = [plot.getBoundingClientRect(), svg.getBoundingClientRect()];
  const left = inner.left - box.left + shareOf(chart.x, first.of.x[first.n]) * inner.width;
  Object.assign(cross.style, { left: `${left}px`, height: `${inner.height}px` });
  plot.append(cross, tip);
  const beside = left + 14 + tip.offsetWidth > box.width ? left - 14 - tip.offsetWidth : left + 14;
  Object.assign(tip.style, { left: `${Math.max(0, Math.min(beside, box.width - tip.offsetWidth))}px`, top: "8px" });
  lit([String(first.number)]);
}
document.addEventListener("pointermove", async (event) => {
  const svg = event.target.closest?.("figure.runs svg");
  if (!svg) return;
  const figure = svg.closest("figure");
  const chart = await chartOf(figure).catch(() => null);
  const box = svg.getBoundingClientRect();
  const [across, up] = [(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height];
  if (chart && across >= 0 && across <= 1) tell(figure, chart, chart.x.low + across * (chart.x.high - chart.x.low), up, -1);
});
document.addEventListener("pointerout", (event) => {
  const figure = event.target.closest?.("figure.runs");
  if (figure && !figure.contains(event.relatedTarget)) silent(figure);
});
document.addEventListener("focusout", (event) => {
  if (event.target.matches?.("figure.runs")) silent(event.target);
});
document.addEventListener("keydown", async (event) => {
  const figure = event.target;
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (!figure.matches?.("figure.runs") || !ways[event.key]) return;
  event.preventDefault();
  const chart = await chartOf(figure).catch(() => null);
  const filled = chart ? chart.lines.map((line, number) => number).filter((number) => chart.lines[number].x.length) : [];
  if (!filled.length) return;
  const last = places.get(figure) || { row: 0, n: -1 };
  const row = (last.row + ways[event.key][1] + filled.length) % filled.length;
  const line = chart.lines[filled[row]];
  const n = Math.max(0, Math.min(line.x.length - 1, last.n + ways[event.key][0]));
  places.set(figure, { row, n });
  tell(figure, chart, line.x[n], shareOf(chart.y, line.y[n]), filled[row]);
});
for (const [kind, way] of [["pointerover", true], ["pointerout", false], ["focusin", true], ["focusout", false]])
  document.addEventListener(kind, (event) => {
    const row = event.target.closest?.(".legend tr[data-line]");
    if (row) lit(way ? [row.dataset.line] : []);
  });
