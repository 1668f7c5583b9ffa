// Search and the choice of light or dark. Without script the page shows everything, and the browser's search finds it.
"use strict";

const search = document.getElementById("search");
const theme = document.getElementById("theme");
const contents = document.getElementById("contents");
const nothing = document.getElementById("nothing");
const articles = [...document.querySelectorAll("article")].map((node) => ({ node, text: node.textContent.toLowerCase() }));
const links = new Map([...document.querySelectorAll("nav li")].map((node) => [node.dataset.for, node]));
const groups = [...document.querySelectorAll("[data-group]")];

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { node, text } of articles) {
    const fits = words.every((word) => text.includes(word));
    node.hidden = !fits;
    links.get(node.id).hidden = !fits;
    found += fits;
  }
  for (const group of groups) {
    group.hidden = !group.querySelector("article:not([hidden]), li:not([hidden])");
  }
  document.querySelector(".intro").hidden = words.length > 0;
  nothing.hidden = found > 0;
}

function kept() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}

function wear(name) {
  if (name) document.documentElement.dataset.theme = name;
}

search.hidden = false;
theme.hidden = false;
search.addEventListener("input", find);
// A link to an operation that the search has hidden leads nowhere.
window.addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.closest("[hidden]")) {
    search.value = "";
    find();
    target.scrollIntoView();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== search) {
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
  try { localStorage.setItem("theme", next); } catch { /* Not kept, then. */ }
});
wear(kept());
if (matchMedia("(max-width: 820px)").matches) contents.open = false;
