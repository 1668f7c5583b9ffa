// The reference: languages of the samples, and trying operations in test mode. docs.js comes before it.
"use strict";

// --- Languages.

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
    const panel = figure.querySelector("pre"); // a figure may have no role
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", caption.textContent);
    caption.hidden = true;
    bar.append(tab);
  }
  calls.prepend(bar);
}

for (const calls of document.querySelectorAll(".calls")) tabbed(calls);
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

function tell(form, title, text) {
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
    tell(form, why, "");
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
  tell(form, "Sent; waiting for the answer…", "");
  try {
    // Relative to this page, so to this service.
    const response = await fetch(`${said.up}${path.slice(1)}${asked}`, options);
    const text = await response.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* As it came. */ }
    tell(form, `${response.status} · X-Request-Id ${response.headers.get("X-Request-Id") || "-"}`, shown);
  } catch {
    tell(form, "No answer: is the service still there?", "");
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

if (keys) { // pages without calls to try have none
  keys.hidden = false;
  keys.addEventListener("submit", (event) => event.preventDefault());
}
for (const form of document.querySelectorAll(".try")) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    send(form).finally(() => { button.disabled = false; });
  });
}
