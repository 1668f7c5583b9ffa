// Everything works without this script. It keeps the menu open on wide screens and stops a double click from sending a
// form twice.
"use strict";

const wide = window.matchMedia("(min-width: 900px)");
const menu = document.querySelector("details.menu");
const filters = document.querySelectorAll("details.filter:not([open])");
if (menu) {
  const follow = () => {
    menu.open = wide.matches;
    for (const filter of filters) filter.open = wide.matches;
  };
  wide.addEventListener("change", follow);
  follow();
}

for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    setTimeout(() => delete form.dataset.sent, 5000);
  });
}

const alert = document.querySelector("[role=alert]");
if (alert) {
  alert.tabIndex = -1;
  alert.focus();
}
