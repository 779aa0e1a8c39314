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
