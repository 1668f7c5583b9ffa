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

if (window.PublicKeyCredential && PublicKeyCredential.parseRequestOptionsFromJSON) {
  for (const part of document.querySelectorAll("[data-needs=passkey]")) part.hidden = false;
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.addEventListener("submit", async (event) => {
      if (form.elements.reply.value) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const options = JSON.parse(form.dataset.options);
      try {
        const credential = form.dataset.passkey === "create"
          ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
          : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
        form.elements.reply.value = JSON.stringify(credential.toJSON());
        form.submit();
      } catch (error) {
        // Cancelled, timed out, or known already: the person sees the browser's own message and may try again.
        console.debug(error.name);
      }
    }, { capture: true });
  }
}

for (const field of document.querySelectorAll("input[type=password][data-show]")) {
  const button = document.createElement("button");
  const draw = () => { button.textContent = field.type === "password" ? field.dataset.show : field.dataset.hide; };
  button.type = "button";
  button.setAttribute("aria-controls", field.id);
  button.className = "peek";
  button.addEventListener("click", () => {
    field.type = field.type === "password" ? "text" : "password";
    draw();
  });
  field.form.addEventListener("submit", () => { field.type = "password"; });
  draw();
  field.after(button);
}

for (const code of document.querySelectorAll("code[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button--plain copy";
  button.textContent = code.dataset.copy;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = code.dataset.copied;
    } catch {
      // The browser does not allow it: the text is selected, to be copied by hand.
      getSelection().selectAllChildren(code);
    }
  });
  code.after(button);
}

// Says that there is something new, and moves nothing under the reader's finger. Only while the page is looked at.
const news = document.querySelector("[data-stream]");
if (news && window.EventSource) {
  let source = null;
  let known = null;
  const show = () => {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = news.dataset.link;
    news.replaceChildren(`${news.dataset.text} `, link);
  };
  const listen = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source && !news.hasChildNodes()) {
      source = new EventSource(news.dataset.stream);
      source.addEventListener("state", (event) => {
        const present = JSON.parse(event.data).news;
        if (present && known !== null && present !== known) show();
        known = known ?? present;
        if (!present || news.hasChildNodes()) source.close();
      });
    }
  };
  document.addEventListener("visibilitychange", listen);
  listen();
}

const alert = document.querySelector("[role=alert]");
if (alert) {
  alert.tabIndex = -1;
  alert.focus();
}
