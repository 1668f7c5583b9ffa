"use strict";
/* Sends what the client gives: each file straight to its granted address, with progress, and then the registration.
   While a check is under way it asks how it stands, and loads the page again when that changed. */
(() => {
  const LARGEST = 10 * 1024 * 1024;
  const TYPES = ["image/jpeg", "image/png", "application/pdf"];
  const POLL = 3000;

  const page = document.getElementById("kyc");
  const form = document.getElementById("kyc-form");
  const error = document.getElementById("kyc-error");
  const button = document.getElementById("kyc-send");
  if (!page) return;

  const ask = async (address, body) => {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ session: page.dataset.session, ...body }),
      credentials: "omit",
    });
    if (answer.status === 400) kept = new Map();
    if (!answer.ok) throw new Error("errorProvider");
    return answer.json();
  };

  const put = (address, headers, file, progress) =>
    new Promise((done, fail) => {
      const request = new XMLHttpRequest();
      request.open("PUT", address);
      request.setRequestHeader("Content-Type", file.type);
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) progress.value = Math.round((100 * event.loaded) / event.total);
      });
      request.addEventListener("load", () => (request.status === 200 ? done() : fail(new Error("errorUpload"))));
      request.addEventListener("error", () => fail(new Error("errorUpload")));
      request.send(file);
    });

  // What was uploaded need not be sent again when something else was wrong.
  let kept = new Map();

  const upload = async (input) => {
    const file = input.files[0];
    if (kept.has(file)) return kept.get(file);
    const progress = input.closest(".field").querySelector("progress");
    progress.hidden = false;
    const place = await ask(page.dataset.upload, { content_type: file.type, size: file.size });
    await put(place.upload_url, place.upload_headers, file, progress);
    progress.value = 100;
    kept.set(file, place.file_key);
    return place.file_key;
  };

  const fault = (input) => {
    if (!input.checkValidity()) return "errorMissing";
    const file = input.type === "file" && input.files[0];
    if (file && !TYPES.includes(file.type)) return "errorType";
    return file && file.size > LARGEST ? "errorSize" : null;
  };

  /* All of them are looked at before the first is sent; what is wrong is marked, and the first of it has the focus. */
  const check = () => {
    const wrong = [...form.querySelectorAll("input")].filter((input) => {
      const problem = fault(input);
      if (problem) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
      return problem;
    });
    if (!wrong.length) return;
    wrong[0].focus();
    throw new Error(fault(wrong[0]));
  };

  const gather = async () => {
    check();
    const given = {};
    for (const input of form.querySelectorAll("input")) {
      if (input.type === "file") {
        if (input.files.length) given[input.name] = await upload(input);
      } else if (input.type !== "radio" || input.checked) {
        given[input.name] = input.value;
      }
    }
    return given;
  };

  if (form) {
    for (const input of form.querySelectorAll("input[type=file]")) {
      const show = () => {
        input.parentElement.querySelector(".file__name").textContent = input.files.length ? input.files[0].name : "";
      };
      input.addEventListener("change", show);
      show();
    }
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const label = button.textContent;
      button.disabled = true;
      button.textContent = page.dataset.sending;
      error.hidden = true;
      try {
        const done = await ask(page.dataset.register, await gather());
        if (done.session) {
          // Who came without a link follows what he has just begun by a session of its own.
          const here = new URL(location.href);
          here.searchParams.set("session", done.session);
          location.replace(here);
        } else {
          location.reload();
        }
      } catch (problem) {
        error.textContent = page.dataset[problem.message] || page.dataset.errorProvider;
        error.hidden = false;
        button.disabled = false;
        button.textContent = label;
      }
    });
  }

  if (page.dataset.live) {
    const look = async () => {
      try {
        const state = await ask(page.dataset.state, {});
        if (state.face !== page.dataset.face) {
          location.reload();
          return;
        }
      } catch {
        /* Away for a moment: the next look may tell. */
      }
      setTimeout(look, POLL);
    };
    setTimeout(look, POLL);
  }
})();
