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
    if (!answer.ok) throw new Error("errorProvider");
    return answer.json();
  };

  const put = (address, file, progress) =>
    new Promise((done, fail) => {
      const request = new XMLHttpRequest();
      request.open("PUT", address);
      request.setRequestHeader("Content-Type", file.type);
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) progress.value = Math.round((100 * event.loaded) / event.total);
      });
      request.addEventListener("load", () => (request.status === 200 ? done() : fail(new Error("errorUpload"))));
      request.addEventListener("error", () => fail(new Error("errorUpload")));
      request.send(file);
    });

  const upload = async (input) => {
    const file = input.files[0];
    if (!TYPES.includes(file.type)) throw new Error("errorType");
    if (file.size > LARGEST) throw new Error("errorSize");
    const progress = input.parentElement.querySelector("progress");
    progress.hidden = false;
    const place = await ask(page.dataset.upload, { content_type: file.type });
    await put(place.upload_url, file, progress);
    progress.value = 100;
    return place.file_key;
  };

  const gather = async () => {
    if (!form.checkValidity()) throw new Error("errorMissing");
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
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const label = button.textContent;
      button.disabled = true;
      button.textContent = page.dataset.sending;
      error.hidden = true;
      try {
        await ask(page.dataset.register, await gather());
        location.reload();
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
