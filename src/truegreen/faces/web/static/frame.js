// After a deed that swapped the page in place: its form is closed, and what became of it has the focus.
// And the section that is looked at is in sight.
(() => {
  "use strict";
  document.addEventListener("htmx:after:swap", () => {
    const said = document.querySelector("main .said, main .lone");
    if (!said || said.dataset.told) return;
    said.dataset.told = "yes";
    for (const deed of document.querySelectorAll("details.deed[open]")) {
      deed.querySelector("form")?.reset();
      deed.open = false;
    }
    said.tabIndex = -1;
    said.focus({preventScroll: true});
    said.scrollIntoView({block: "nearest"});
  });

  // Where the sections don't fit, the one that is looked at is in sight.
  const nav = document.querySelector(".nav"), here = nav?.querySelector("[aria-current]");
  if (here) nav.scrollLeft = here.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;

  // A stream that ends because its part of the page is gone has ended as it should.
  addEventListener("unhandledrejection", (event) => {
    if (event.reason?.name === "AbortError") event.preventDefault();
  });
})();
