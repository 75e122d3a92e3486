// Follows what an agent writes while its run is under way. Everything is set as text; nothing of it acts.
(() => {
  "use strict";
  const MOST_LINES = 2000;
  const SEQUENCES = /\x1b[PX\]^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]/g;
  const INVISIBLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
  const clean = (text) => text.replace(SEQUENCES, "").replace(INVISIBLE, "");

  async function follow(box) {
    if (box.dataset.followed) return;
    box.dataset.followed = "yes";
    try {
      const answer = await fetch(box.dataset.follow, {credentials: "same-origin"});
      if (!answer.ok || !answer.body) return;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done && box.isConnected; part = await reader.read()) add(box, clean(part.value));
      reader.cancel();
    } catch { /* the rest of the page says that it is stale */ }
  }

  function add(box, text) {
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    box.querySelector(".none")?.remove();
    box.append(text);
    const lines = box.textContent.split("\n");
    if (lines.length > MOST_LINES) box.textContent = lines.slice(-MOST_LINES).join("\n");
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  function begin() {
    for (const box of document.querySelectorAll(".log.output")) {
      if (!box.dataset.seen) { box.dataset.seen = "yes"; box.scrollTop = box.scrollHeight; }
      if (box.dataset.follow) follow(box);
    }
  }
  document.addEventListener("DOMContentLoaded", begin);
  document.addEventListener("htmx:after:swap", begin);
  document.addEventListener("htmx:sse:after:message", begin);
})();
