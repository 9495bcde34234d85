// SPDX-License-Identifier: Apache-2.0

// Without this file pages are complete, but for the search and the buttons.
"use strict";

const root = document.documentElement.dataset.root;
const one = (selector) => document.querySelector(selector);

function themeButton() {
  const button = one(".theme");
  const show = () => button.setAttribute("aria-pressed", String(theme.isDark()));
  button.hidden = false;
  button.addEventListener("click", () => { theme.choose(!theme.isDark()); show(); });
  theme.system.addEventListener("change", show);
  show();
}

// On a small screen the pages are behind a button.
function menuButton() {
  const button = one(".menu");
  button.hidden = false;
  document.documentElement.classList.add("has-menu");
  button.addEventListener("click", () => {
    const open = document.documentElement.classList.toggle("menu-open");
    button.setAttribute("aria-expanded", String(open));
  });
}

// What scrolls can be scrolled with the keyboard, too.
function focusBoxes() {
  for (const box of document.querySelectorAll("main .box, main pre")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// The index is large, so it is loaded with the first search.
let loading;
function loadIndex() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + "assets/search-index.js";
    script.onload = () => resolve(window.searchIndex.map(prepare));
    script.onerror = () => reject(new Error("cannot load the search index"));
    document.head.append(script);
  });
  return loading;
}

function prepare(section) {
  const low = (text) => (text ?? "").toLowerCase();
  return { ...section, low: { page: low(section.page), heading: low(section.heading), text: low(section.text) } };
}

// How well does a section answer? 0 if it lacks a word.
function score(section, words, phrase) {
  const { page, heading, text } = section.low;
  let sum = 0;
  for (const word of words) {
    const inTitles = 20 * wordIn(heading, word) + (heading ? 6 : 12) * wordIn(page, word);
    const inText = Math.min(3, text.split(word).length - 1);
    if (inTitles + inText === 0) return 0;
    sum += inTitles + inText;
  }
  if (words.length > 1) sum += (heading.includes(phrase) ? 60 : 0) + (page.includes(phrase) ? 30 : 0) + (text.includes(phrase) ? 20 : 0);
  if (heading === phrase || (!heading && page === phrase)) sum += 100;
  return sum;
}

// 1 if a word of the text begins so, less if it only has this inside.
function wordIn(text, word) {
  const at = text.indexOf(word);
  if (at < 0) return 0;
  return at === 0 || !/[a-z0-9]/.test(text[at - 1]) ? 1 : 0.3;
}

const mostResults = 15;

function search(sections, query) {
  const phrase = query.toLowerCase().trim().replace(/\s+/g, " ");
  const words = phrase.split(" ");
  const scored = sections.map((section) => ({ section, points: score(section, words, phrase) })).filter((r) => r.points > 0);
  scored.sort((a, b) => b.points - a.points);
  return { words, count: scored.length, best: scored.slice(0, mostResults).map((r) => r.section) };
}

// The words around the first hit.
function excerpt(section, words) {
  const text = section.text ?? "";
  const hits = words.map((word) => section.low.text.indexOf(word)).filter((at) => at >= 0);
  const begin = Math.max(0, Math.min(...hits, text.length) - 50);
  const from = begin === 0 ? 0 : text.indexOf(" ", begin) + 1;
  const part = text.slice(from, from + 170);
  return (from > 0 ? "… " : "") + part + (from + 170 < text.length ? " …" : "");
}

// The text with its hits marked, as nodes: nothing of it is read as HTML.
function marked(text, words) {
  const escaped = words.filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${escaped.join("|")})`, "i")).map((part, i) => {
    if (i % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}

function resultItem(section, words) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  const title = document.createElement("span");
  const where = document.createElement("span");
  const text = document.createElement("span");
  link.href = root + section.address;
  title.className = "title";
  where.className = "where";
  text.className = "excerpt";
  title.append(...marked(section.heading ?? section.page, words));
  if (section.heading) where.append(section.page);
  text.append(...marked(excerpt(section, words), words));
  link.append(title, where, text);
  item.append(link);
  return item;
}

function searchBox() {
  const box = one(".search"), input = one("#query"), panel = one("#results");
  const list = panel.querySelector("ul"), status = panel.querySelector(".count");
  const close = () => { panel.hidden = true; };
  const show = async () => {
    const query = input.value.trim();
    if (query.length < 2) return close();
    let text, items = [];
    try {
      const found = search(await loadIndex(), query);
      items = found.best.map((section) => resultItem(section, found.words));
      text = found.count === 0 ? "Nothing has all of these words." : `${found.count} found`;
    } catch (error) {
      text = `The search does not work: ${error.message}.`;
    }
    if (query !== input.value.trim()) return; // there is a newer one
    list.replaceChildren(...items);
    status.textContent = text;
    panel.hidden = false;
  };
  box.hidden = false;
  input.addEventListener("focus", () => loadIndex().catch(() => {})); // show says why it does not work
  input.addEventListener("input", show);
  input.addEventListener("click", show);
  box.addEventListener("keydown", (event) => {
    if (!panel.hidden) moveInResults(event, input, list, close);
    else if (event.key === "Enter" || event.key === "ArrowDown") show();
  });
  list.addEventListener("click", close); // a link may lead to this very page
  document.addEventListener("click", (event) => { if (!box.contains(event.target)) close(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea")) return;
    event.preventDefault();
    input.select();
  });
}

// Arrows move, Enter opens the first, Escape closes.
function moveInResults(event, input, list, close) {
  const links = [...list.querySelectorAll("a")];
  const stops = [input, ...links];
  const at = stops.indexOf(document.activeElement);
  switch (event.key) {
    case "ArrowDown": stops[(at + 1) % stops.length].focus(); break;
    case "ArrowUp": stops.at(at - 1).focus(); break;
    case "Enter": if (at > 0 || !links.length) return; links[0].click(); break;
    case "Escape": close(); input.focus(); break;
    default: return;
  }
  event.preventDefault();
}

themeButton();
menuButton();
searchBox();
focusBoxes();
window.addEventListener("resize", focusBoxes);
