// Everything here is a convenience: each page says the same without it. Text of models only ever becomes textContent.
"use strict";
const feed = document.querySelector("[data-stream]");
if (feed && window.EventSource) {
  const source = new EventSource(feed.dataset.stream); // after a break it goes on behind the last id by itself
  source.onmessage = (message) => {
    const event = JSON.parse(message.data);
    const line = document.createElement("li");
    const kind = document.createElement("b");
    kind.textContent = event.type;
    line.append(`${event.seq} `, kind, ` ${event.text}`);
    feed.prepend(line);
    while (feed.children.length > 60) feed.lastElementChild.remove();
    const news = document.getElementById("news");
    if (news) news.hidden = false;
  };
  addEventListener("pagehide", () => source.close());
}
const moment = document.querySelector("form.moment");
if (moment) {
  const [range, number] = [moment.querySelector("[type=range]"), moment.querySelector("[type=number]")];
  range.addEventListener("input", () => { number.value = range.value; });
  range.addEventListener("change", () => moment.requestSubmit());
}
const waiting = document.querySelector("[data-wait]");
if (waiting && window.EventSource) {
  const source = new EventSource(waiting.dataset.wait);
  source.onmessage = (message) => {
    if (/^(ResultVerified|ReactionFailed)$/.test(JSON.parse(message.data).type)) { source.close(); location.reload(); }
  };
  addEventListener("pagehide", () => source.close());
}
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
    const links = [...document.querySelectorAll("main tbody a")];
    const next = links[links.indexOf(document.activeElement) + way];
    if (next) next.focus();
  }
});
