// Draws the history with uPlot over the picture that came with the page: axes, and values under the pointer.
(() => {
  "use strict";
  const HEIGHT = 210, LABEL = 70, plots = new WeakMap();
  const colour = (tone) => {
    const [name, faded] = tone.split(" ");
    return ink(`${name}-${faded ? "pale" : "fill"}`);
  };
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const stacked = (layers) => layers.map((_, top) => layers[0].map((__, at) => layers.slice(0, top + 1).reduce((sum, layer) => sum + layer[at], 0)));

  function options(box, width, told) {
    const layer = (series, number) => ({
      label: series.name,
      fill: colour(series.tone),
      width: 0,
      points: {show: false},
      paths: uPlot.paths.bars({size: [0.78, 64], align: 1}),
      value: (_, __, ___, at) => at === null ? "–" : String(told.layers[number].runs[at]),
    });
    // Labels come with the page, in its zone; where several bars share one, the first has it.
    // The first day may have a bar or two only: then its label gives way to that of the next day.
    const first = told.at.filter((_, at) => told.labels[at] !== told.labels[at - 1]);
    const room = told.seconds * told.at.length * LABEL / Math.max(1, width - 56);
    if (first[1] - first[0] < Math.min(room, first[2] - first[1])) first.shift();
    const every = Math.max(1, Math.ceil(first.length * LABEL / Math.max(1, width - 40)));
    const splits = first.filter((_, number) => number % every === 0);
    const label = (at) => told.labels[told.at.indexOf(at)] ?? "";
    const axis = {stroke: ink("soft"), font: "12px system-ui, sans-serif", ticks: {show: false}};
    return {
      width,
      height: HEIGHT,
      padding: [8, 16, 0, 0],
      legend: {show: false},
      cursor: {y: false, drag: {x: false, y: false}, points: {show: false}},
      scales: {x: {time: true, range: (_, from, to) => [from, to + told.seconds]}, y: {range: (_, __, most) => [0, Math.max(1, most * 1.08)]}},
      axes: [
        {...axis, grid: {show: false}, size: 32, gap: 9, align: 1, splits: () => splits, values: (_, times) => times.map(label)},
        {...axis, size: 40, grid: {stroke: ink("line"), width: 1}, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 100000]},
      ],
      series: [{}, ...told.layers.map(layer).reverse()],
      hooks: {setCursor: [(plot) => tell(box, told, plot.cursor.idx)]},
    };
  }

  function tell(box, told, at) {
    const line = box.querySelector(".chart-now");
    if (!line) return;
    const parts = at === null || at === undefined ? [] : told.layers.filter((layer) => layer.runs[at]).map((layer) => `${layer.runs[at]} ${layer.name}`);
    line.textContent = parts.length ? `${told.words[at]}: ${parts.join(", ")}` : "";
  }

  function draw(box) {
    const told = JSON.parse(box.dataset.series), place = box.querySelector(".plot");
    if (!place || !window.uPlot || !told.at.length) return;
    box.dataset.drawn = "yes";
    if (!watched.has(place)) { watched.add(place); sizes.observe(place); }
    const key = box.dataset.series + ink("surface") + place.clientWidth;
    const known = plots.get(place);
    tell(box, told, known?.plot.cursor.idx);
    if (known?.key === key) return;
    known?.plot.destroy();
    const data = [told.at, ...stacked(told.layers.map((layer) => layer.runs)).reverse()];
    plots.set(place, {key, plot: new uPlot(options(box, place.clientWidth, told), data, place)});
  }

  const all = () => document.querySelectorAll("[data-chart]").forEach(draw);
  document.addEventListener("DOMContentLoaded", all);
  document.addEventListener("truegreen:theme", all);
  document.addEventListener("htmx:after:swap", all);
  document.addEventListener("htmx:sse:after:message", all);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  let waiting = 0;
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(all, 150); };
  addEventListener("resize", soon);
  const watched = new WeakSet(), sizes = new ResizeObserver(soon);
})();
