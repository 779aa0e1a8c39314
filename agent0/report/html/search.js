// Searches this file. It asks nobody for anything, and what it shows is only ever text.
"use strict";
const box = document.querySelector("[data-search]"), input = box.querySelector("input");
const list = box.querySelector("ol"), count = box.querySelector("[data-count]"), most = 40;
let places = null;
box.hidden = false;
const reveal = (place) => {
  for (let one = place; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  document.querySelector(".seen")?.classList.remove("seen");
  place.classList.add("seen");
  place.scrollIntoView({ block: "center" });
};
const named = (place) => place.closest("[data-name]")?.dataset.name || [...document.querySelectorAll("h2")]
  .filter((one) => one.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING).pop()?.textContent || "Top";
const hit = (place, text, words) => {
  const [line, button, snippet] = ["li", "button", "span"].map((name) => document.createElement(name));
  const first = Math.min(...words.map((word) => text.indexOf(word)));
  let rest = place.textContent.slice(Math.max(0, first - 60), first + 160).replace(/\s+/g, " ");
  for (let at; (at = words.map((word) => [rest.toLowerCase().indexOf(word), word]).filter(([n]) => n >= 0).sort(([a], [b]) => a - b)[0]);) {
    const mark = document.createElement("mark");
    mark.textContent = rest.slice(at[0], at[0] + at[1].length);
    snippet.append(rest.slice(0, at[0]), mark);
    rest = rest.slice(at[0] + at[1].length);
  }
  snippet.append(rest);
  button.type = "button";
  button.textContent = named(place);
  button.addEventListener("click", () => reveal(place));
  line.append(button, " ", snippet);
  return line;
};
const search = () => {
  places ??= [...document.querySelectorAll("pre, summary, tbody tr, li, p, figcaption")].filter((one) => !box.contains(one))
    .map((one) => [one, one.textContent.toLowerCase()]);
  const words = [...new Set(input.value.toLowerCase().split(/\s+/).filter(Boolean))].slice(0, 16);
  const found = words.length ? places.filter(([, text]) => words.every((word) => text.includes(word))) : [];
  list.replaceChildren(...found.slice(0, most).map(([place, text]) => hit(place, text, words)));
  count.textContent = words.length ? `${found.length} place${found.length === 1 ? "" : "s"}${found.length > most ? `, the first ${most} are listed` : ""}` : "";
};
let waiting = 0;
input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 120); });
input.addEventListener("change", () => { if (location.hash !== `#q=${encodeURIComponent(input.value)}`) location.replace(`#q=${encodeURIComponent(input.value)}`); });
const arrive = () => {
  const name = decodeURIComponent(location.hash.slice(1));
  const place = name && !name.startsWith("q=") && document.getElementById(name);
  if (place) reveal(place);
  else if (name.startsWith("q=") && name.slice(2) !== input.value) { input.value = name.slice(2); search(); }
};
addEventListener("hashchange", arrive);
arrive();
