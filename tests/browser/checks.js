// What is wrong with a page as it stands in the browser: its shape, its names, its contrasts.
// Evaluated by tests, which get a list of sentences; an empty list is a good page.
({asked}) => {
  const wrong = [];
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const INTERACTIVE = "a[href], button, input:not([type=hidden]), select, textarea, summary";
  const words = (text) => text.replace(/\s+/g, " ").trim().slice(0, 60);
  const told = (element) => {
    const id = element.id ? `#${element.id}` : "", look = element.getAttribute("class");
    return `<${element.localName}${id}${look ? `.${look.trim().replace(/\s+/g, ".")}` : ""}> «${words(element.textContent)}»`;
  };

  // --- what is there at all

  const kept = (ask) => {
    const known = new Map();
    return (element) => {
      if (!known.has(element)) known.set(element, ask(element));
      return known.get(element);
    };
  };
  const style = kept(getComputedStyle);
  const shape = kept((element) => element.getBoundingClientRect());
  const shown = kept((element) => {
    if (!element.checkVisibility({visibilityProperty: true, opacityProperty: true})) return false;
    const {width, height} = shape(element);
    return width > 0 && height > 0;
  });
  // For screen readers only.
  const unseen = kept((element) => {
    if (!element || element === document.body) return false;
    if (element.matches(".skip") && element !== document.activeElement) return true;
    return style(element).clipPath === "inset(50%)" || unseen(element.parentElement);
  });
  const scrolls = kept((element) => {
    const above = element.parentElement;
    if (!above || above === document.body) return false;
    return /auto|scroll|hidden/.test(style(above).overflowX) || scrolls(above);
  });
  const interactive = () => all(INTERACTIVE).filter((each) => shown(each) && !unseen(each));

  // --- shape

  function fits() {
    const room = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > room + 1) wrong.push(`the page is ${document.documentElement.scrollWidth} wide in a window of ${room}`);
    for (const each of all("body *")) {
      if (!shown(each) || unseen(each) || scrolls(each) || each.closest("svg") !== null && each.localName !== "svg") continue;
      const {left, right} = shape(each);
      if (left < -1 || right > room + 1) wrong.push(`stands out of the window (${Math.round(left)} to ${Math.round(right)} of ${room}): ${told(each)}`);
    }
  }

  function apart() {
    const pieces = interactive().flatMap((each) => [...each.getClientRects()].map((rect) => ({each, rect})));
    pieces.sort((a, b) => a.rect.top - b.rect.top);
    const floats = (element) => element.closest(".topbar, dialog, .deed-in, .menu-in") ?? document.body;
    const inner = pieces.map(({each}) => floats(each));
    for (let i = 0; i < pieces.length; i++) {
      for (let j = i + 1; j < pieces.length && pieces[j].rect.top < pieces[i].rect.bottom; j++) {
        const one = pieces[i], other = pieces[j];
        if (inner[i] !== inner[j] || one.each.contains(other.each) || other.each.contains(one.each)) continue;
        const across = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
        const down = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top);
        if (across > 2 && down > 2) wrong.push(`lies over another: ${told(one.each)} and ${told(other.each)}`);
      }
    }
  }

  function whole() {
    for (const each of all("body *")) {
      if (!shown(each) || unseen(each) || each.closest("svg, select, textarea")) continue;
      const look = style(each);
      const own = [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (!own || look.display === "inline") continue;
      const dots = look.textOverflow === "ellipsis" || look.webkitLineClamp !== "none";
      const cutX = /hidden|clip/.test(look.overflowX) && each.scrollWidth > each.clientWidth + 1;
      const cutY = /hidden|clip/.test(look.overflowY) && each.scrollHeight > each.clientHeight + 2;
      if ((cutX || cutY) && !dots) wrong.push(`is cut off: ${told(each)}`);
    }
  }

  function large() {
    // WCAG 2.5.8: 24 pixels, or so much room around it that nothing else is hit; text in a line is exempt.
    const LEAST = 24, targets = interactive().map((each) => ({each, rect: shape(each.closest("label") ?? each)}));
    const middle = ({left, right, top, bottom}) => [(left + right) / 2, (top + bottom) / 2];
    const far = ([x, y], {left, right, top, bottom}) => Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
    for (const {each, rect} of targets) {
      if (rect.width >= LEAST - 0.5 && rect.height >= LEAST - 0.5) continue;
      if (each.localName === "a" && style(each).display === "inline") continue;
      const near = targets.find((other) => other.each !== each && !other.each.contains(each) && !each.contains(other.each) && far(middle(rect), other.rect) < LEAST / 2);
      if (near) wrong.push(`is too small to be hit (${Math.round(rect.width)} × ${Math.round(rect.height)}): ${told(each)} beside ${told(near.each)}`);
    }
  }

  // What opens over a page opens inside of the window.
  function opens() {
    for (const each of all("details.deed, details.menu")) {
      if (!shown(each)) continue;
      const was = each.open;
      each.open = true;
      const inside = each.querySelector(":scope > :not(summary)");
      if (inside?.checkVisibility()) {
        const {left, right} = inside.getBoundingClientRect();
        if (left < -1 || right > document.documentElement.clientWidth + 1) wrong.push(`opens out of the window (${Math.round(left)} to ${Math.round(right)}): ${told(each)}`);
      }
      each.open = was;
    }
  }

  // Gross breakage: no sheet, no script, nothing to read.
  function drawn() {
    for (const each of all("link[rel=stylesheet]")) if (!each.sheet?.cssRules.length) wrong.push(`a sheet that is not there: ${each.href}`);
    const main = document.querySelector("main");
    if (!main) return;
    const {width, height} = shape(main);
    const room = document.documentElement.clientWidth;
    if (width < room * 0.6 || height < 100) wrong.push(`the main part is ${Math.round(width)} × ${Math.round(height)} in a window of ${room}`);
    if (main.innerText.trim().length < 40) wrong.push("there is next to nothing to read");
    if (getComputedStyle(document.body).fontFamily.startsWith('"Times')) wrong.push("the page is not styled");
  }

  // --- names and order

  const hidden = (node) => node.nodeType === Node.ELEMENT_NODE && (node.getAttribute("aria-hidden") === "true" || !node.checkVisibility());
  const spoken = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (hidden(node)) return "";
    if (node.localName === "img" || node.localName === "svg") return node.getAttribute("aria-label") ?? node.getAttribute("alt") ?? "";
    return [...node.childNodes].filter((each) => [Node.TEXT_NODE, Node.ELEMENT_NODE].includes(each.nodeType)).map(spoken).join("");
  };
  const label = (element) => {
    const by = element.getAttribute("aria-labelledby");
    const said = by ? by.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ") : element.getAttribute("aria-label");
    return (said ?? "").trim();
  };
  const name = (element) => {
    if (label(element)) return label(element);
    if (element.labels?.length) return [...element.labels].map(spoken).join(" ").trim();
    if (/input|select|textarea/.test(element.localName)) return (element.getAttribute("title") ?? "").trim();
    return spoken(element).trim() || (element.getAttribute("title") ?? "").trim();
  };

  function named() {
    for (const each of all(INTERACTIVE)) {
      if (each.checkVisibility() && !name(each)) wrong.push(`has no name: ${each.outerHTML.slice(0, 120)}`);
    }
    for (const each of all("img")) if (!each.hasAttribute("alt")) wrong.push(`a picture without words: ${each.outerHTML.slice(0, 120)}`);
    for (const each of all("svg")) {
      const said = each.getAttribute("aria-hidden") === "true" || (each.getAttribute("role") === "img" && label(each));
      if (!said && !each.closest("[aria-hidden=true]")) wrong.push(`a drawing without words: ${each.outerHTML.slice(0, 120)}`);
    }
    for (const each of all("[tabindex]")) if (each.tabIndex > 0) wrong.push(`jumps the queue: ${told(each)}`);
    const ids = all("[id]").map((each) => each.id);
    for (const id of new Set(ids.filter((each, at) => ids.indexOf(each) !== at))) wrong.push(`two things are called #${id}`);
  }

  function ordered() {
    if (!document.title.trim()) wrong.push("the page has no title");
    if (document.documentElement.lang !== "en") wrong.push("the page does not say its language");
    const heads = all("h1, h2, h3, h4, h5, h6").filter((each) => each.checkVisibility());
    const levels = heads.map((each) => Number(each.localName[1]));
    if (levels.filter((level) => level === 1).length !== 1) wrong.push(`${levels.filter((level) => level === 1).length} first headings`);
    levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) wrong.push(`a heading skips a level: ${told(heads[at])}`); });
    for (const each of heads) if (!spoken(each).trim()) wrong.push(`an empty heading: ${told(each)}`);
    const inBody = (selector) => all(selector).filter((each) => !each.closest("main, article, aside, nav, section") || selector === "main");
    for (const [selector, what] of [["main", "main part"], ["header", "banner"], ["footer", "foot"]]) {
      if (inBody(selector).length !== 1) wrong.push(`${inBody(selector).length} of: ${what}`);
    }
    const ways = all("nav").map(label);
    if (ways.some((each) => !each)) wrong.push("a way around without a name");
    if (new Set(ways).size !== ways.length) wrong.push(`ways around share a name: ${ways.join(", ")}`);
  }

  function tabled() {
    for (const each of all("table")) {
      if (!each.caption && !label(each)) wrong.push(`a table without a caption: ${told(each)}`);
      if (!each.querySelector("th")) wrong.push(`a table without headers: ${told(each)}`);
      for (const head of all("th", each)) {
        if (!head.hasAttribute("scope")) wrong.push(`a header that says not of what: ${told(head)}`);
        if (!spoken(head).trim() && head.checkVisibility()) wrong.push(`an empty header in: ${told(each)}`);
      }
    }
    for (const each of all("dl")) {
      const kinds = new Set([...each.children].map((child) => child.localName));
      if (![...kinds].every((kind) => ["div", "dt", "dd"].includes(kind))) wrong.push(`a list of pairs with something else in it: ${told(each)}`);
    }
    for (const each of all("ul, ol")) {
      if ([...each.children].some((child) => child.localName !== "li")) wrong.push(`a list with something else in it: ${told(each)}`);
    }
  }

  function heard() {
    const line = document.getElementById("stale");
    if (!line || line.getAttribute("aria-live") !== "polite") wrong.push("nobody hears that the page is stale");
  }

  // --- contrast

  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const known = new Map();
  const colour = (text) => {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [red, green, blue, alpha / 255]);
    }
    return known.get(text);
  };
  const over = ([r, g, b, a], [r2, g2, b2]) => [r * a + r2 * (1 - a), g * a + g2 * (1 - a), b * a + b2 * (1 - a), 1];
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [dark, bright] = [light(one), light(other)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const ground = kept((element) => {
    if (!element) return colour("#fff");
    const own = colour(style(element).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(element.parentElement));
  });
  const opacity = kept((element) => element ? Number(style(element).opacity) * opacity(element.parentElement) : 1);

  function legible(element, look, what) {
    const under = ground(element);
    const [red, green, blue, alpha] = colour(look.color);
    const found = ratio(over([red, green, blue, alpha * opacity(element)], under), under);
    const size = parseFloat(look.fontSize);
    const big = size >= 24 || (size >= 18.66 && Number(look.fontWeight) >= 700);
    // A glyph stands beside its word, which says the same.
    const least = big || element.closest(".glyph[aria-hidden=true]") ? 3 : 4.5;
    if (found < least - 0.01) wrong.push(`contrast ${found.toFixed(2)} of ${least}: ${what} in ${told(element)}`);
  }

  function contrasted() {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const seen = new Set();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || seen.has(element) || element.closest(":disabled, script, style")) continue;
      seen.add(element);
      if (shown(element) && !unseen(element)) legible(element, style(element), `«${words(node.data)}»`);
    }
    for (const each of all("input[placeholder], textarea[placeholder]")) {
      if (shown(each) && each.placeholder) legible(each, getComputedStyle(each, "::placeholder"), `placeholder «${each.placeholder}»`);
    }
  }

  const CHECKS = {drawn, fits, apart, whole, large, opens, named, ordered, tabled, heard, contrasted};
  for (const each of asked) CHECKS[each]();
  return [...new Set(wrong)];
}
