// What is on a page that none of our templates put there; a list of it, empty on a good page.
() => {
  const made = "main script, iframe, object, embed, base, main style, main link, main meta, img,"
    + " video, audio, portal, marquee, frameset, body template, plaintext, xmp";
  const found = [...document.querySelectorAll(made)].map((each) => each.outerHTML.slice(0, 200));
  for (const each of document.querySelectorAll("body :not(.uplot, .uplot *)")) {
    for (const {name, value} of each.attributes) {
      const foreign = name === "x" && !each.closest("svg");
      if (foreign || /^on|^style$|^hx-on|^data-hx|^formaction$|^srcdoc$/.test(name)) found.push(`${name}=${value}`);
      if (/^(href|src|action)$/.test(name) && /^\s*(javascript|data|vbscript|\/\/|http)/i.test(value)) found.push(`${name}=${value}`);
    }
  }
  if (document.querySelectorAll("main").length !== 1) found.push("main parts");
  if (document.querySelectorAll("h1").length !== 1) found.push("first headings");
  return found;
}
