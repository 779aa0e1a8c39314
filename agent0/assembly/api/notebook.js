// One widget for both pictures of a run. Text from models only ever becomes text nodes.
const INK = "var(--jp-ui-font-color1, #222)", QUIET = "var(--jp-border-color1, #8a8a8a)", LINE = "#0072b2", TEST = "#009e73";
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 280, 52, 14, 14, 44];

function node(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const percent = (value) => `${(100 * value).toFixed(1)} %`;

function head(state) {
  const line = node("div", { class: "agent0-head", style: "margin:.3em 0" });
  line.append(node("b", {}, state.run ?? ""), ` ${state.status ?? ""} ${state.note ?? ""}`);
  if (state.problem) line.append(node("div", { role: "alert", style: "color:#b00020" }, state.problem));
  return line;
}

function curve(state) {
  const points = state.points ?? [], scored = points.filter((point) => point.y !== null);
  if (!scored.length) return node("div", {}, "Nothing was evaluated yet.");
  const last = scored.at(-1);
  const label = `validation ${percent(last.y)} behind ${scored.length} evaluations`;
  const svg = drawn("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label, style: "max-width:720px;width:100%",
    "font-size": 11, "font-family": "sans-serif", fill: INK,
  });
  const across = Math.max(1, points.length - 1);
  const x = (index) => LEFT + ((WIDTH - LEFT - RIGHT) * index) / across;
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(drawn("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share), stroke: QUIET, "stroke-opacity": 0.4 }));
    svg.append(drawn("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`));
  }
  const every = Math.max(1, Math.ceil(points.length / 12));
  points.forEach((point, index) => {
    if (index % every === 0) svg.append(drawn("text", { x: x(index), y: HEIGHT - 26, "text-anchor": "middle" }, point.x));
  });
  svg.append(drawn("text", { x: WIDTH / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "iteration"));
  const at = (point) => x(points.indexOf(point));
  const band = [...scored.map((p) => [at(p), y(p.high)]), ...[...scored].reverse().map((p) => [at(p), y(p.low)])];
  svg.append(drawn("polygon", { points: band.join(" "), fill: LINE, "fill-opacity": 0.15 }));
  svg.append(drawn("polyline", { points: scored.map((p) => [at(p), y(p.y)]).join(" "), fill: "none", stroke: LINE, "stroke-width": 2 }));
  for (const point of scored) {
    const told = `${point.x}: ${percent(point.y)} (${percent(point.low)} to ${percent(point.high)})`;
    const mark = { cx: at(point), cy: y(point.y), r: 4, fill: point.promoted ? LINE : "none", stroke: LINE, class: "point" };
    svg.append(drawn("circle", mark, drawn("title", {}, told)));
  }
  for (const test of state.tests ?? []) {
    const line = { x1: LEFT, x2: WIDTH - RIGHT, y1: y(test.y), y2: y(test.y), stroke: TEST, "stroke-dasharray": "5 4" };
    svg.append(drawn("line", line, drawn("title", {}, `test, ${test.x}: ${percent(test.y)}`)));
  }
  return svg;
}

function transcript(state, choose) {
  const box = node("div", {});
  const menu = node("select", { "aria-label": "attempt" }, node("option", { value: "" }, "newest attempt"));
  for (const attempt of state.attempts ?? []) {
    const option = node("option", { value: attempt.id }, `${attempt.id}: ${attempt.verdict}`);
    option.selected = attempt.id === state.chosen;
    menu.append(option);
  }
  menu.addEventListener("change", () => choose(menu.value));
  box.append(menu, node("p", {}, node("b", {}, "task "), state.question ?? ""));
  for (const turn of state.turns ?? []) {
    const style = "white-space:pre-wrap;overflow-wrap:anywhere;margin:0 0 .6em;padding-left:.6em;border-left:3px solid #8a8a8a";
    box.append(node("div", {}, node("b", {}, turn.who), node("pre", { style }, turn.text)));
  }
  if (state.verdict) box.append(node("p", {}, `${state.verdict}; answer: `, node("code", {}, state.answer ?? "none")));
  return box;
}

function render({ model, el }) {
  const choose = (attempt) => { model.set("attempt", attempt); model.save_changes(); };
  const show = () => {
    const state = model.get("state");
    const body = model.get("kind") === "curve" ? curve(state) : transcript(state, choose);
    const box = node("div", { class: `agent0 agent0-${model.get("kind")}`, style: `color:${INK}` });
    box.append(head(state), body);
    el.replaceChildren(box);
  };
  model.on("change:state", show);
  show();
}

export default { render };
