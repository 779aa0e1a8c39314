// Everything here is a convenience: each page says the same without it. Text of models only ever becomes textContent.
"use strict";
// A stream while the page is seen: browsers allow a server six connections, and a tab in the background would keep one.
const follow = (address, take) => {
  let source = null;
  const place = new URL(address, location.href); // after a break it goes on behind the last id by itself
  const change = () => {
    if (document.hidden) { source?.close(); source = null; }
    else if (!source) {
      source = new EventSource(place);
      source.onmessage = (message) => {
        place.searchParams.set("after", message.lastEventId);
        take(JSON.parse(message.data));
      };
    }
  };
  document.addEventListener("visibilitychange", change);
  addEventListener("pagehide", () => source?.close());
  change();
};
// Parts that a page marks as live follow what happens: the page is fetched again, and parts that differ are exchanged.
// A hidden page rests until it is seen.
const known = new Map([...document.querySelectorAll("[data-live]")].map((part) => [part.dataset.live, textOf(part)]));
let stale = false, renewing = false;
async function renew() {
  stale = true;
  if (renewing) return;
  renewing = true;
  while (stale && !document.hidden) {
    const begun = performance.now();
    stale = false;
    if (!(await exchanged().catch(() => false))) stale = true;
    await new Promise((done) => setTimeout(done, Math.max(1000, 5 * (performance.now() - begun))));
  }
  renewing = false;
}
async function exchanged() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) exchange(part, page.querySelector(`[data-live="${part.dataset.live}"]`));
  for (const input of moment ? moment.querySelectorAll("[max]") : []) {
    const end = page.querySelector("form.moment [max]")?.max || input.max;
    if (input.value === input.max && input !== document.activeElement) [input.max, input.value] = [end, end];
    else input.max = end;
  }
  return !document.querySelector("[data-unread]"); // it is being read beside: ask again
}
function textOf(part) { return part.innerHTML.replace(/name="again" value="[^"]*"/g, ""); }
function exchange(part, fresh) {
  if (!fresh || known.get(part.dataset.live) === textOf(fresh)) return;
  known.set(part.dataset.live, textOf(fresh));
  const list = part.querySelector("[data-virtual]");
  if (list && list.querySelectorAll("[data-part]").length > 1) { merge(list, fresh); return; }
  const kept = [["details", "open"], [".wide", "scrollLeft"]];
  const states = kept.map(([name, state]) => [...part.querySelectorAll(name)].map((one) => one[state]));
  const places = "a, button, summary, [tabindex]";
  const focus = [...part.querySelectorAll(places)].indexOf(document.activeElement);
  const ticks = new Map([...part.querySelectorAll("input[type=checkbox]")].map((input) => [input.value, input.checked]));
  part.replaceChildren(...fresh.childNodes);
  part.querySelectorAll("input[type=checkbox]").forEach((input) => { input.checked = ticks.get(input.value) ?? input.checked; });
  kept.forEach(([name, state], n) => part.querySelectorAll(name).forEach((one, i) => { if (i in states[n]) one[state] = states[n][i]; }));
  if (focus >= 0) part.querySelectorAll(places)[focus]?.focus();
  beginLists(part);
}
// Of a list with several parts rows are exchanged, and new ones put before the others.
function merge(list, fresh) {
  const first = list.querySelector("[data-part]");
  for (const row of [...fresh.querySelectorAll("tbody tr")].reverse()) {
    const link = row.querySelector("a")?.getAttribute("href");
    const old = list.querySelector(`a[href="${CSS.escape(link)}"]`)?.closest("tr");
    const [tick, before] = [row, old].map((of) => of?.querySelector("input[type=checkbox]"));
    if (tick && before) tick.checked = before.checked;
    if (old) old.replaceWith(row);
    else if (!first.style.height) first.prepend(row);
  }
}
document.addEventListener("visibilitychange", () => { if (stale) renew(); });
if (document.querySelector("[data-poll]")) setInterval(() => { if (!document.hidden) renew(); }, 2000);
const moment = document.querySelector("form.moment");
// A form that is refused stays as it was typed, with the reason in it.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post") return;
  event.preventDefault();
  const [button, body] = [event.submitter, new URLSearchParams(new FormData(form))];
  if (button) button.disabled = true;
  const answer = await fetch(form.action, { method: "POST", headers: { Accept: "application/json" }, body }).catch(() => null);
  if (answer?.redirected) { location.assign(answer.url); return; }
  if (button) button.disabled = false;
  const wrong = answer ? await answer.json().catch(() => ({})) : { title: "The server does not answer." };
  const line = form.querySelector("[data-problem]") || form.appendChild(document.createElement("p"));
  [line.className, line.role, line.dataset.problem] = ["bad", "alert", ""];
  line.textContent = [wrong.title || "It was refused.", wrong.detail, wrong.fix].filter(Boolean).join(" ");
});
const feed = document.querySelector("[data-stream]");
if (feed && window.EventSource) follow(feed.dataset.stream, (event) => {
  const [line, place, kind] = ["li", "a", "b"].map((name) => document.createElement(name));
  [place.href, place.textContent, kind.textContent] = [`/events/${Number(event.seq)}`, event.seq, event.type];
  line.append(place, " ", kind, ` ${event.text}`);
  feed.prepend(line);
  while (feed.children.length > 60) feed.lastElementChild.remove();
  renew();
});
// A training under way writes its steps beside the log: no event says that there are more.
setInterval(() => { if (document.querySelector("[data-under-way]")) renew(); }, 3000);
const followed = document.querySelector("[data-follow]");
if (followed && window.EventSource) follow(followed.dataset.follow, renew);
if (moment) {
  const [range, number] = [moment.querySelector("[type=range]"), moment.querySelector("[type=number]")];
  range.addEventListener("input", () => { number.value = range.value; });
  range.addEventListener("change", () => moment.requestSubmit());
}
const waiting = document.querySelector("[data-wait]");
if (waiting && window.EventSource) follow(waiting.dataset.wait, (event) => {
  if (/^(ResultVerified|ReactionFailed)$/.test(event.type)) location.reload();
});
const chat = document.querySelector("[data-chat]");
const turn = (role, text) => {
  const [box, who, said] = ["div", "span", "pre"].map((name) => document.createElement(name));
  box.className = `turn ${role}`;
  [who.textContent, said.textContent] = [role, text];
  box.append(who, said);
  document.getElementById("said").append(box);
  return said;
};
const parts = async (answer, take) => {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", read = await reader.read(); !read.done; read = await reader.read()) {
    const lines = (rest + read.value).split("\n\n");
    rest = lines.pop();
    for (const line of lines) if (line !== "data: [DONE]") take(JSON.parse(line.slice(6)));
  }
};
if (chat && window.TextDecoderStream) chat.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { model, said, message } = chat.elements;
  const messages = [...JSON.parse(said.value || "[]"), { role: "user", content: message.value }];
  turn("user", message.value);
  const shown = turn("assistant", "");
  const body = JSON.stringify({ model: model.value, messages, stream: true });
  const answer = await fetch(chat.dataset.chat, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  if (!answer.ok) { const wrong = await answer.json(); shown.textContent = `${wrong.title} ${wrong.detail || ""}`; return; }
  await parts(answer, (part) => { shown.textContent += part.choices[0]?.delta?.content || ""; });
  said.value = JSON.stringify([...messages, { role: "assistant", content: shown.textContent }]);
  message.value = "";
  message.focus();
});
// Long lists: the next part is fetched when the end of this one comes near, and parts far away leave the document. What is
// fetched is the next page, escaped by the server; of it only the part is taken.
const tall = (part) => {
  const kept = document.createDocumentFragment();
  const height = part.getBoundingClientRect().height;
  kept.append(...part.childNodes);
  const space = part.tagName === "TBODY" ? part.appendChild(document.createElement("tr")).appendChild(document.createElement("td")) : part;
  space.style.height = `${height}px`;
  return kept;
};
const virtual = (list, more) => {
  const away = new Map();
  const near = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting && away.has(target)) {
        target.style.height = "";
        target.replaceChildren(away.get(target));
        away.delete(target);
      } else if (!isIntersecting && !away.has(target) && !target.contains(document.activeElement)) away.set(target, tall(target));
    }
  }, { rootMargin: "3000px" });
  list.querySelectorAll("[data-part]").forEach((part) => near.observe(part));
  const end = new IntersectionObserver(async ([seen]) => {
    const next = seen.isIntersecting && more.querySelector("a");
    if (!next) return;
    end.unobserve(more);
    const answer = await fetch(next.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const name = CSS.escape(list.dataset.virtual);
    const part = page.querySelector(`[data-virtual="${name}"] [data-part]`);
    if (!part) return;
    const last = [...list.querySelectorAll("[data-part]")].pop();
    last.after(document.adoptNode(part));
    near.observe(part);
    const rest = page.querySelector(`[data-more="${name}"]`);
    more.replaceChildren(...(rest ? rest.childNodes : []));
    end.observe(more);
  }, { rootMargin: "1500px" });
  end.observe(more);
};
function beginLists(root) {
  if (window.IntersectionObserver) for (const list of root.querySelectorAll("[data-virtual]")) {
    const more = root.querySelector(`[data-more="${CSS.escape(list.dataset.virtual)}"]`);
    if (more) virtual(list, more);
  }
}
beginLists(document);
// A token's values are told where it is pointed at, and from one to the next by arrow keys.
const heat = document.querySelector("[data-heat]"), readout = document.querySelector("[data-readout]");
const point = (token) => {
  if (!token) return;
  heat.querySelector(".at")?.classList.remove("at");
  token.classList.add("at");
  readout.textContent = `${JSON.stringify(token.textContent)} ${token.title}`;
};
heat?.addEventListener("pointerover", (event) => point(event.target.closest("[title]")));
heat?.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const tokens = [...heat.querySelectorAll("[title]")];
  point(tokens[Math.max(0, tokens.findIndex((one) => one.classList.contains("at")) + step)]);
});
const target = document.querySelector("details:target");
if (target) target.open = true;
addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ",": -1, ".": 1 }[event.key];
  if (step && moment) {
    const number = moment.querySelector("[type=number]");
    number.value = Number(number.value || number.max) + step;
    moment.requestSubmit();
  }
  const way = { j: 1, k: -1 }[event.key];
  if (way) {
    const links = [...document.querySelectorAll("main tbody a")].filter((one) => one.getClientRects().length);
    const next = links[links.indexOf(document.activeElement) + way];
    if (next) next.focus();
  }
});
