// The theme that somebody chose, before anything is drawn; without a choice the system's counts.
(() => {
  const root = document.documentElement, kept = "truegreen-theme";
  const apply = (name) => name ? root.setAttribute("data-theme", name) : root.removeAttribute("data-theme");
  const read = () => { try { return localStorage.getItem(kept); } catch { return null; } };
  const keep = (name) => { try { localStorage.setItem(kept, name); } catch { /* not kept, still applied */ } };
  const dark = () => (root.getAttribute("data-theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  apply(["light", "dark"].includes(read()) ? read() : null);
  const tell = () => document.querySelectorAll("[data-theme-switch]").forEach((button) => {
    button.hidden = false;
    button.setAttribute("aria-pressed", String(dark()));
  });
  document.addEventListener("DOMContentLoaded", tell);
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-switch]")) return;
    const name = dark() ? "light" : "dark";
    apply(name); keep(name); tell();
    document.dispatchEvent(new CustomEvent("truegreen:theme", {detail: name}));
  });
})();
