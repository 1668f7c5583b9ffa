// Of the reference and the guides: search, copying, and the choice of light or dark. Without script the pages show
// everything but the further languages of samples, and the browser's search finds it.
"use strict";

const search = document.getElementById("search");
const theme = document.getElementById("theme");
const contents = document.getElementById("contents");
const nothing = document.getElementById("nothing");
const hits = document.getElementById("hits");
const said = document.body.dataset;
const keys = document.getElementById("keys");
const links = new Map([...document.querySelectorAll("nav li")].map((node) => [node.dataset.for, node]));
const groups = [...document.querySelectorAll("[data-group]")];
const small = matchMedia("(max-width: 820px)");

function kept(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

function keep(name, value) {
  try { localStorage.setItem(name, value); } catch { /* Not kept, then. */ }
}

// --- Search: what an operation or a section is called counts most, then its fields and codes, then what is said of it.
// Operations of this page are hidden and shown; those of other pages and the guides come from the index, when first
// somebody searches. The index has synonyms, too.

// Fields and codes of errors.
function names(node) {
  return [...node.querySelectorAll("td code")].map((each) => each.textContent);
}

// Method and path of an operation; an event has none.
function calling(node) {
  const call = node.querySelector(".call");
  return call ? call.textContent : "";
}

const MOST = 60;
const RANKS = [
  [100, (node) => `${node.id.replaceAll("_", " ")} ${node.querySelector("h3").textContent} ${calling(node)}`],
  [40, (node) => node.querySelector(".summary").textContent],
  [15, (node) => names(node).join(" ")],
  [1, (node) => node.textContent],
];
const articles = [...document.querySelectorAll("article")].map((node) => ({
  node,
  title: node.querySelector("h3").textContent.trim(),
  summary: calling(node) || node.querySelector(".summary").textContent,
  names: names(node),
  texts: RANKS.map(([worth, text]) => [worth, text(node).toLowerCase()]),
}));

let elsewhere = null;

async function fetchIndex() {
  if (elsewhere) return;
  elsewhere = [];
  try {
    const entries = await (await fetch(said.index)).json();
    const here = new Set(articles.map((each) => each.node.id));
    elsewhere = entries.filter((each) => !(each.operation && here.has(each.href.split("#")[1]))).map((each) => ({
      href: said.up + each.href,
      title: each.title,
      summary: each.of,
      names: each.names,
      text: each.text,
      // Of titles with the same word the shortest is nearest: a page's own before those of its sections.
      texts: (each.operation
        ? [[100, `${each.also} ${each.of}`], [15, each.names.join(" ")]]
        : [[90 + 50 / (each.title.length + 1), each.title], [95, each.also], [30, each.of], [15, each.names.join(" ")],
          [1, each.text]])
        .map(([worth, text]) => [worth, text.toLowerCase()]),
    }));
    find();
  } catch {
    elsewhere = null;  // The next search asks again.
  }
}

function rank(texts, words) {
  let sum = 0;
  for (const word of words) {
    const found = texts.find(([, text]) => text.includes(word));
    if (!found) return 0;
    // The beginning of a word is worth more than its middle.
    sum += found[0] + (begins(found[1], word) ? found[0] / 2 : 0);
  }
  return sum;
}

function begins(text, word) {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!/\p{L}/u.test(text[at - 1] || " ")) return true;
  }
  return false;
}

// Where a word stands in a longer text, with some words around it.
function excerpt(text, word) {
  const at = text.toLowerCase().indexOf(word);
  if (at < 0) return "";
  const from = at < 50 ? 0 : text.indexOf(" ", at - 50) + 1;
  const to = text.indexOf(" ", Math.min(at + 80, text.length));
  return `${from ? "… " : ""}${text.slice(from, to < 0 ? text.length : to)}${to < 0 ? "" : " …"}`;
}

function hit(entry, words) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = entry.href || `#${entry.node.id}`;
  link.append(marked(entry.title, words));
  item.append(link, " ", marked(entry.summary, words));
  const told = `${entry.title} ${entry.summary}`.toLowerCase();
  for (const word of words.filter((each) => !told.includes(each))) {
    const name = entry.names.find((each) => each.toLowerCase().includes(word));
    const more = name || excerpt(entry.text || "", word);
    if (more) item.append(" ", marked(more, words));
  }
  return item;
}

function marked(text, words) {
  const line = document.createElement("span");
  const lower = text.toLowerCase();
  let at = 0;
  while (at < text.length) {
    const next = words.map((word) => [lower.indexOf(word, at), word.length]).filter(([place]) => place >= 0)
      .sort((one, other) => one[0] - other[0] || other[1] - one[1])[0];
    if (!next) break;
    line.append(text.slice(at, next[0]));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(next[0], next[0] + next[1]);
    line.append(mark);
    at = next[0] + next[1];
  }
  line.append(text.slice(at));
  return line;
}

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const article of articles) {
    const worth = words.length ? rank(article.texts, words) : 1;
    article.node.hidden = !worth;
    links.get(article.node.id).hidden = !worth;
    if (worth) found.push([worth, article]);
  }
  for (const group of groups) {
    group.hidden = !!group.querySelector("article, li") && !group.querySelector("article:not([hidden]), li:not([hidden])");
  }
  for (const entry of words.length ? elsewhere || [] : []) {
    const worth = rank(entry.texts, words);
    if (worth) found.push([worth, entry]);
  }
  found.sort((one, other) => other[0] - one[0]);
  hits.replaceChildren(...(words.length ? found.slice(0, MOST).map(([, entry]) => hit(entry, words)) : []));
  hits.hidden = !words.length || !found.length;
  for (const each of document.querySelectorAll(".intro, .guide, .subjects, #keys")) each.hidden = words.length > 0;
  nothing.hidden = !words.length || found.length > 0;
}

// --- Copying.

function copied(button, text) {
  const done = (word) => {
    button.textContent = word;
    setTimeout(() => { button.textContent = said.copy; }, 1500);
  };
  // Over plain http a browser has no clipboard but for what is selected.
  if (navigator.clipboard) {
    navigator.clipboard.writeText(text).then(() => done(said.copied), () => done(said.notCopied));
    return;
  }
  const range = document.createRange();
  range.selectNodeContents(button.parentElement.querySelector("code"));
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  done(document.execCommand("copy") ? said.copied : said.selected);
}

for (const figure of document.querySelectorAll(".sample")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = said.copy;
  button.addEventListener("click", () => copied(button, figure.querySelector("code").textContent));
  figure.append(button);
}

// --- The rest.

function wear(name) {
  if (name) document.documentElement.dataset.theme = name;
}

search.hidden = false;
theme.hidden = false;
search.addEventListener("focus", fetchIndex);
search.addEventListener("input", () => { fetchIndex(); find(); });
search.addEventListener("keydown", (event) => {
  const first = hits.querySelector("a");
  if (event.key === "Enter" && first) first.click();
});

// A link to an operation that the search has hidden, or a hit of it: the search is over, and the operation is shown.
function arrive() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && search.value) {
    search.value = "";
    find();
    target.scrollIntoView();
  }
}
window.addEventListener("hashchange", arrive);
hits.addEventListener("click", (event) => {
  if (event.target.closest("a")) setTimeout(arrive);
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest && event.target.closest("input, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === "Escape" && document.activeElement === search) {
    search.value = "";
    find();
  }
});
theme.addEventListener("click", () => {
  const present = document.documentElement.dataset.theme
    || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const next = present === "dark" ? "light" : "dark";
  wear(next);
  keep("theme", next);
});
wear(kept("theme"));
if (small.matches) contents.open = false;
