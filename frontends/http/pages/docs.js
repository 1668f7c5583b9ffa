// Search, languages of the samples, copying, trying in test mode, and the choice of light or dark. Without script the page
// shows everything but the further languages, and the browser's search finds it.
"use strict";

const search = document.getElementById("search");
const theme = document.getElementById("theme");
const contents = document.getElementById("contents");
const nothing = document.getElementById("nothing");
const hits = document.getElementById("hits");
const intro = document.querySelector(".intro");
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

// --- Search: what an operation is called counts most, then its fields and codes, then what is said of it.

// Fields and codes of errors.
function names(node) {
  return [...node.querySelectorAll("td code")].map((each) => each.textContent);
}

const RANKS = [
  [100, (node) => node.id.replaceAll("_", " ") + " " + node.querySelector("h3").textContent],
  [40, (node) => node.querySelector(".summary").textContent],
  [15, (node) => names(node).join(" ")],
  [1, (node) => node.textContent],
];
const articles = [...document.querySelectorAll("article")].map((node) => ({
  node,
  title: node.querySelector("h3").textContent.trim(),
  summary: node.querySelector(".summary").textContent,
  names: names(node),
  texts: RANKS.map(([worth, text]) => [worth, text(node).toLowerCase()]),
}));

function rank(texts, words) {
  let sum = 0;
  for (const word of words) {
    const found = texts.find(([, text]) => text.includes(word));
    if (!found) return 0;
    // The beginning of a word is worth more than its middle.
    sum += found[0] + (new RegExp(`(^|[^a-z])${word.replace(/[^a-z0-9]/g, "\\$&")}`).test(found[1]) ? found[0] / 2 : 0);
  }
  return sum;
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
    group.hidden = !group.querySelector("article:not([hidden]), li:not([hidden])");
  }
  hits.replaceChildren();
  if (words.length) {
    found.sort((one, other) => other[0] - one[0]);
    for (const [, article] of found) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `#${article.node.id}`;
      link.append(marked(article.title, words));
      item.append(link, " ", marked(article.summary, words));
      const told = `${article.title} ${article.summary}`.toLowerCase();
      for (const word of words.filter((each) => !told.includes(each))) {
        const name = article.names.find((each) => each.toLowerCase().includes(word));
        if (name) item.append(" ", marked(name, words));
      }
      hits.append(item);
    }
  }
  hits.hidden = !words.length || !found.length;
  intro.hidden = keys.hidden = words.length > 0;
  nothing.hidden = found.length > 0;
}

// --- Languages and copying.

let language = kept("language") || "curl";

function speak(name) {
  language = name;
  for (const calls of document.querySelectorAll(".calls")) {
    const figures = [...calls.querySelectorAll("figure")];
    const there = figures.some((each) => each.dataset.language === name) ? name : "curl";
    for (const figure of figures) figure.hidden = figure.dataset.language !== there;
    for (const tab of calls.querySelectorAll("[role=tab]")) {
      const chosen = tab.dataset.language === there;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
  }
}

function tabbed(calls) {
  const bar = document.createElement("div");
  bar.className = "tabs";
  bar.setAttribute("role", "tablist");
  bar.setAttribute("aria-label", "Language");
  for (const figure of calls.querySelectorAll("figure")) {
    const caption = figure.querySelector("figcaption");
    const tab = document.createElement("button");
    tab.type = "button";
    tab.textContent = caption.textContent;
    tab.dataset.language = figure.dataset.language;
    tab.setAttribute("role", "tab");
    figure.setAttribute("role", "tabpanel");
    figure.setAttribute("aria-label", caption.textContent);
    caption.hidden = true;
    bar.append(tab);
  }
  calls.prepend(bar);
}

function copied(button, text) {
  const done = (word) => {
    button.textContent = word;
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  // Over plain http a browser has no clipboard but for what is selected.
  if (navigator.clipboard) {
    navigator.clipboard.writeText(text).then(() => done("Copied"), () => done("Not copied"));
    return;
  }
  const range = document.createRange();
  range.selectNodeContents(button.parentElement.querySelector("code"));
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  done(document.execCommand("copy") ? "Copied" : "Selected");
}

for (const calls of document.querySelectorAll(".calls")) tabbed(calls);
for (const figure of document.querySelectorAll(".sample")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => copied(button, figure.querySelector("code").textContent));
  figure.append(button);
}
document.addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (!tab) return;
  // What stands above grows or shrinks, too: the tab stays where it was clicked.
  const before = tab.getBoundingClientRect().top;
  speak(tab.dataset.language);
  keep("language", language);
  scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
});
document.addEventListener("keydown", (event) => {
  const tab = event.target.closest && event.target.closest("[role=tab]");
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!tab || !step) return;
  const tabs = [...tab.parentElement.children];
  const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
  next.click();
  next.focus();
});
speak(language);

// --- Trying, in test mode: the keys are in the form and nowhere else.

const keysSaid = document.getElementById("keys-said");

function keyPair() {
  const key = keys.elements.key.value.trim();
  const secret = keys.elements.secret.value.trim();
  if (!key || !secret) return [null, "Enter your test keys first, at the top of this page."];
  if (!key.startsWith("svc_test_")) return [null, "This is no test key: they begin with svc_test_."];
  return [{ "X-Api-Key": key, "X-Api-Secret": secret }, ""];
}

function said(form, title, text) {
  const caption = document.createElement("p");
  caption.textContent = title;
  const shown = document.createElement("pre");
  shown.tabIndex = 0;
  const code = document.createElement("code");
  code.textContent = text;
  shown.append(code);
  form.querySelector(".said").replaceChildren(caption, ...(text ? [shown] : []));
}

async function send(form) {
  const [headers, why] = keyPair();
  if (!headers) {
    said(form, why, "");
    keysSaid.textContent = why;
    return;
  }
  keysSaid.textContent = "";
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("input[data-in]")) {
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
    else if (value) query.set(field.name, value);
  }
  const options = { method: form.dataset.method, headers, credentials: "omit", cache: "no-store" };
  const body = form.elements.body;
  if (body) {
    headers["Content-Type"] = "application/json";
    options.body = body.value;
  }
  if (form.dataset.creates) headers["Idempotency-Key"] = crypto.randomUUID ? crypto.randomUUID() : uuid();
  const asked = query.size ? `?${query}` : "";
  said(form, "Sent; waiting for the answer…", "");
  try {
    // Beside this page, so to this service.
    const response = await fetch(`${path.slice(1)}${asked}`, options);
    const text = await response.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* As it came. */ }
    said(form, `${response.status} · X-Request-Id ${response.headers.get("X-Request-Id") || "-"}`, shown);
  } catch {
    said(form, "No answer: is the service still there?", "");
  }
}

// Over plain http, but for localhost, browsers have no crypto.randomUUID.
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const text = [...bytes].map((each) => each.toString(16).padStart(2, "0")).join("");
  return text.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
}

keys.hidden = false;
keys.addEventListener("submit", (event) => event.preventDefault());
for (const form of document.querySelectorAll(".try")) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    send(form).finally(() => { button.disabled = false; });
  });
}

// --- The rest.

function wear(name) {
  if (name) document.documentElement.dataset.theme = name;
}

search.hidden = false;
theme.hidden = false;
search.addEventListener("input", find);
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
