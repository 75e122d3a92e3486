// What pages do when there is JavaScript: say when they are stale, keep their counts, triage by keys.
// Everything that matters also works without this file. Texts are set as text, never as markup.
(() => {
  "use strict";
  const PATIENCE = 12000, LOOK = 1000, ERRORS = 400, UNKNOWN = 401;
  const root = document.documentElement;
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const clock = (at) => new Date(at).toLocaleTimeString([], {hour12: false});

  // --- live: fresh, or said to be stale

  const live = () => one("[hx-sse\\:connect]");
  let heard = Date.now(), since = 0, loggedOut = false;

  function say() {
    const line = one("#stale");
    if (!line) return;
    line.hidden = !since;
    root.toggleAttribute("data-stale", Boolean(since));
    const why = loggedOut ? "you are logged out: truegreen login prints a new link" : "what you see may have changed; trying again";
    const words = since ? `Stale since ${clock(since)} – ${why}` : "";
    if (line.textContent !== words) line.textContent = words;
  }

  function stale() {
    since ||= heard;
    say();
  }

  function fresh() {
    heard = Date.now();
    since = 0;
    loggedOut = false;
    say();
  }

  document.addEventListener("htmx:sse:before:message", (event) => {
    const kind = event.detail.message.event;
    if (kind === "stale") stale();
    else if (kind === "beat" && !since) heard = Date.now();
    // Only a fresh rendering makes a stale page fresh: come back for one.
    else if (kind === "beat") event.detail.connection.reader?.cancel();
  });
  document.addEventListener("htmx:sse:after:message", (event) => {
    if (event.detail.message.event) return;
    fresh();
    tellCounts();
    refocus();
  });
  document.addEventListener("htmx:sse:error", (event) => {
    loggedOut = event.detail.status === UNKNOWN;
    stale();
  });
  document.addEventListener("htmx:error", (event) => {
    if (event.target === live()) stale();
  });
  document.addEventListener("htmx:before:swap", (event) => {
    // A page that says what went wrong is not what changed on this one.
    const {ctx} = event.detail;
    if (ctx.sourceElement !== live() || !(ctx.response?.status >= ERRORS)) return;
    event.preventDefault();
    loggedOut = ctx.response.status === UNKNOWN;
    stale();
  });
  setInterval(() => {
    const element = live();
    if (!element || document.hidden) return;
    if (Date.now() - heard > PATIENCE) stale();
    // A stream that never began does not come back by itself.
    if (since && window.htmx && !element._htmx?.sse && Date.now() - tried > 3 * LOOK) reconnect(element);
  }, LOOK);

  let tried = 0;
  function reconnect(element) {
    tried = Date.now();
    htmx.ajax("GET", element.getAttribute("hx-sse:connect"), {source: element}).catch(stale);
  }

  if (window.htmx) htmx.config.sse = {reconnectDelay: 500, reconnectMaxDelay: 3000};

  // --- the counts beside the sections, and in the title

  function tellCounts() {
    const head = one("#live-head");
    if (!head) return;
    tellCount("/tasks", Number(head.dataset.silent), "count l-red", "silent failures");
    tellCount("/inbox", Number(head.dataset.waiting), "count", "that nobody has looked at");
    const title = document.title.replace(/^\([\d.,]+\) /, "");
    const silent = Number(head.dataset.silent);
    document.title = silent ? `(${silent.toLocaleString("en")}) ${title}` : title;
  }

  function tellCount(href, number, look, words) {
    const link = one(`.nav a[href="${href}"]`);
    if (!link) return;
    const shown = one(".count", link);
    if (!number) { shown?.remove(); return; }
    const count = shown ?? link.appendChild(document.createElement("span"));
    const hidden = document.createElement("span");
    hidden.className = "sr";
    hidden.textContent = ` ${words}`;
    count.className = look;
    count.title = words;
    count.replaceChildren(number.toLocaleString("en"), hidden);
  }

  // --- what is open closes when somebody looks elsewhere

  const OPEN = "details.deed[open], details.menu[open]";
  document.addEventListener("click", (event) => {
    for (const each of all(OPEN)) if (!each.contains(event.target)) each.open = false;
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("details.deed") && event.target.open) one("form input:not([type=hidden]), form textarea", event.target)?.focus();
  }, true);

  // --- for ever: the button waits until the end of the id is typed

  function guard(input) {
    const button = one("button.primary", input.form);
    if (button) button.disabled = input.value !== input.dataset.confirm;
  }
  document.addEventListener("input", (event) => {
    if (event.target.dataset?.confirm) guard(event.target);
  });
  const guardAll = () => all("input[data-confirm]").forEach(guard);

  // --- a secret is shown once; this puts it where it is needed

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(one(button.dataset.copy).textContent.trim());
    button.textContent = "Copied";
  });

  // --- triage by keys

  let place = -1, inItems = false;
  const items = () => all("[data-item]");
  const current = () => document.activeElement?.closest?.("[data-item]");

  function go(to) {
    const list = items();
    if (!list.length) return;
    place = Math.max(0, Math.min(to, list.length - 1));
    list[place].focus();
    list[place].scrollIntoView({block: "nearest"});
  }

  function press(item, key) {
    const found = one(`[data-key="${key}"]`, item);
    if (!found) return;
    if (found.tagName !== "DETAILS") { found.click(); return; }
    found.open = true;
    one("input:not([type=hidden]), button", found)?.focus();
  }

  function refocus() {
    // What was dealt with is gone: the next takes its place.
    const lost = document.activeElement === document.body || document.activeElement?.matches(".said");
    if (inItems && lost && !one("dialog[open]")) go(place);
  }

  document.addEventListener("focusin", (event) => {
    if (event.target.matches?.(".said")) return; // what became of it is read out, and triage goes on
    const item = current();
    inItems = Boolean(item);
    if (item) place = items().indexOf(item);
  });
  document.addEventListener("htmx:after:swap", () => { guardAll(); refocus(); });

  const KEYS = {
    j: () => go(place + 1),
    k: () => go(place < 0 ? 0 : place - 1),
    a: () => current() && press(current(), "a"),
    s: () => current() && press(current(), "s"),
    r: () => current() && press(current(), "r"),
    d: () => current() && press(current(), "d"),
    "?": () => one("#keys")?.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input, textarea, select");
    if (event.key === "Escape") { close(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
    if (event.key === "Enter" && event.target.matches?.("[data-item]")) { one("a.title", event.target)?.click(); return; }
    if (!items().length && event.key !== "?") return;
    const act = KEYS[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  function close() {
    const open = all(OPEN);
    const item = current();
    open.forEach((each) => { each.open = false; });
    if (open.length && item) item.focus();
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-open-keys]")) one("#keys")?.showModal();
  });
  document.addEventListener("DOMContentLoaded", guardAll);
  if (document.readyState !== "loading") guardAll();
})();
