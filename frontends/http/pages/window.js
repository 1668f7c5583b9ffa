"use strict";
/* Keeps the payer window up to date. The page is drawn by the server alone: when the payment's face changes, this
   script fetches the page again and puts the new <main> in place of the old one. Without it the page reloads itself. */
(() => {
  const POLL = 3000;
  const PATIENCE = 15000;
  const SILENCE = 6000; // a stream that has said nothing for so long is held back by some proxy: poll

  let main = document.getElementById("window");
  let stream = null;
  let poll = 0;
  let silence = 0;
  let beat = 0;
  let drawing = null;
  let deadlineAt = 0; // in performance.now() time, so that a wrong or moved clock of the payer changes nothing

  const span = (seconds) => {
    const two = (number) => String(number).padStart(2, "0");
    const minutes = Math.floor(seconds / 60);
    const tail = `${two(minutes % 60)}:${two(seconds % 60)}`;
    return minutes >= 60 ? `${Math.floor(minutes / 60)}:${tail}` : `${minutes}:${two(seconds % 60)}`;
  };

  const setTime = (now, deadline) => {
    deadlineAt = performance.now() + (Number(deadline) - Number(now));
    tick();
  };

  const tick = () => {
    const countdown = document.getElementById("countdown");
    if (!countdown) return;
    const left = Math.max(0, Math.floor((deadlineAt - performance.now()) / 1000));
    countdown.textContent = span(left);
    countdown.classList.toggle("is-short", left < 60);
  };

  const returnLater = () => {
    const address = main.dataset.return;
    if (!address) return;
    const soon = document.getElementById("soon");
    const number = document.getElementById("soon-seconds");
    const at = performance.now() + Number(main.dataset.returnAfter) * 1000;
    soon.hidden = false;
    const timer = setInterval(() => {
      const left = Math.ceil((at - performance.now()) / 1000);
      number.textContent = String(Math.max(0, left));
      if (left > 0) return;
      clearInterval(timer);
      location.replace(address); // and not assign(): "back" in the shop shall not lead to the countdown again
    }, 200);
  };

  const stop = () => {
    if (stream) stream.close();
    stream = null;
    clearInterval(poll);
    clearTimeout(silence);
    clearInterval(beat);
    poll = silence = beat = 0;
  };

  const get = (address, type) => fetch(address, {
    cache: "no-store",
    headers: { Accept: type },
    signal: AbortSignal.timeout ? AbortSignal.timeout(PATIENCE) : undefined,
  });

  // `drawn` changes with the amount or the QR of a subscription, also where the face stays; payments have none.
  const isShown = ({ face, drawn }) => face === main.dataset.face && drawn === main.dataset.drawn;

  const draw = async () => {
    const answer = await get(main.dataset.page || location.href, "text/html");
    if (answer.status === 429 || answer.status >= 500) throw new Error(`status ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = fresh.getElementById("window");
    if (!next || isShown(next.dataset)) return;
    const focused = main.contains(document.activeElement);
    stop();
    next.classList.add("is-new");
    main.replaceWith(next);
    main = next;
    document.title = fresh.title;
    if (focused) {
      main.tabIndex = -1;
      main.focus({ preventScroll: true });
    }
    if (main.dataset.face !== "waiting") window.scrollTo({ top: 0 });
    document.getElementById("announcer").textContent = main.dataset.headline;
    start();
  };

  /* Says that the service cannot be reached, where the page would go on as if it were heard. */
  const away = (is) => {
    const word = document.getElementById("offline");
    if (!word || word.hidden === !is || (is && !main.dataset.state)) return;
    word.hidden = !is;
    document.documentElement.classList.toggle("is-offline", is);
    document.getElementById("announcer").textContent = is ? word.dataset.says : "";
  };

  const receive = (standing) => {
    away(false);
    if (standing.now) setTime(standing.now, standing.deadline);
    if (isShown(standing) || drawing) return;
    drawing = draw().catch(() => setTimeout(ask, POLL)).finally(() => { drawing = null; });
  };

  const ask = async () => {
    if (!main.dataset.state) return;
    try {
      const answer = await get(main.dataset.state, "application/json");
      if (answer.ok || answer.status === 404) receive(await answer.json());
    } catch {
      away(true); // the next poll asks again
    }
  };

  const fallBack = () => {
    if (!poll) poll = setInterval(ask, POLL);
  };

  const listen = () => {
    if (!window.EventSource) return fallBack();
    stream = new EventSource(main.dataset.events);
    silence = setTimeout(fallBack, SILENCE);
    stream.addEventListener("state", (event) => {
      clearTimeout(silence);
      clearInterval(poll);
      poll = 0;
      receive(JSON.parse(event.data));
    });
    stream.addEventListener("error", fallBack);
  };

  const start = () => {
    if (main.dataset.deadline) setTime(main.dataset.now, main.dataset.deadline);
    returnLater();
    if (!main.dataset.events) return;
    listen();
    beat = setInterval(tick, 250);
  };

  // A phone freezes the page while the payer is in the bank's app: look at once when they come back.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
  window.addEventListener("offline", () => away(true));
  window.addEventListener("online", ask);
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  start();
})();
