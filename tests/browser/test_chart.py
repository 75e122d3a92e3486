"""The history chart of the overview: what its axis says can be read."""

from __future__ import annotations

from itertools import pairwise, product

from tests.browser.conftest import Visit
from tests.browser.serving import Site

RECORDING = """\
(() => {
  const draws = CanvasRenderingContext2D.prototype.fillText;
  window.drawn = [];
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    window.drawn.push({text, x, y, width: this.measureText(text).width, align: this.textAlign});
    return draws.call(this, text, x, y, ...more);
  };
})()
"""
REDRAW = """\
([first, width]) => {
  const box = document.querySelector("[data-chart]"), told = JSON.parse(box.dataset.series);
  told.labels = told.at.map((_, at) => `${11 + Math.floor((at + 4 - first) / 4)} Nov`);
  box.querySelector(".plot").style.width = `${width}px`;
  window.drawn = [];
  box.dataset.series = JSON.stringify(told);
  document.dispatchEvent(new Event("truegreen:theme"));
  return new Promise((done) => setTimeout(() => done(window.drawn), 400));
}
"""


def test_labels_of_days_do_not_overlap_however_much_of_the_first_day_is_shown(
    gallery: Site, visit: Visit
) -> None:
    visitor = visit(gallery, alone=True)
    visitor.page.add_init_script(RECORDING)
    page = visitor.open("/?span=7d")
    page.wait_for_selector("[data-drawn] canvas")
    for width, first in product((320, 700, 1100), (1, 2, 3, 4)):
        drawn = page.evaluate(REDRAW, [first, width])
        days = {each["x"]: each for each in drawn if each["text"].endswith("Nov")}
        labels = [days[x] for x in sorted(days)]
        assert len(labels) > 2
        for left, right in pairwise(labels):
            assert left["align"] == right["align"]
            end = left["x"] + max(left["width"], right["width"])
            assert end + 4 < right["x"], (first, width, left, right)
