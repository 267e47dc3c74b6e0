// The faults of a page, as an array of sentences: of its colors, and with layout also of the rest.
((layout) => {
  const faults = [], width = innerWidth;
  const fault = (what, e) => { if (faults.length < 20) faults.push(what + ": " + e.outerHTML.slice(0, 120)); };
  const root = document.scrollingElement;
  if (root.scrollWidth > width) faults.push(`the page is ${root.scrollWidth} px wide`);
  const luminance = ([r, g, b]) => {
    const f = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const background = (e) => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const hidden = (e) => e.closest("thead") && getComputedStyle(e.closest("thead")).clipPath !== "none";
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange(), seen = new Set();
  for (let n; (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || hidden(e) || !e.getClientRects().length) continue;
    const drawn = e instanceof SVGElement;
    if (!seen.has(e)) {
      seen.add(e);
      const style = getComputedStyle(e);
      const [a, b] = [luminance(numbers(drawn ? style.fill : style.color)), luminance(background(e))].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) fault("contrast " + ((a + 0.05) / (b + 0.05)).toFixed(2), e);
    }
    if (!layout) continue;
    range.selectNodeContents(n);
    const rects = range.getClientRects();
    for (const r of rects) if (r.width > 1 && (r.right > width + 1 || r.left < -1)) { fault("text outside of the window", e); break; }
    if (drawn || rects.length < 2 || e.closest("pre")) continue; // a command may break anywhere
    for (const word of n.data.matchAll(/[^\s\-_.\/:>]+/g)) {
      if (word[0].length > 20) continue;
      range.setStart(n, word.index);
      range.setEnd(n, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) { fault(`"${word[0]}" is broken`, e); break; }
    }
  }
  if (!layout) return faults;
  for (const e of document.body.querySelectorAll("*")) {
    if (e.closest("svg") || hidden(e) || e.matches("thead")) continue;
    const r = e.getBoundingClientRect();
    if (r.width > 0 && (r.right > width + 1 || r.left < -1)) fault("outside of the window", e);
    if (getComputedStyle(e).overflow !== "visible" && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) fault("cut", e);
  }
  for (const e of document.querySelectorAll("tbody tr > :first-child, tbody th")) {
    if (e.getBoundingClientRect().width < 80) fault("narrow first column", e);
    for (const q of e.querySelectorAll(".quiet")) if (q.getClientRects()[0]?.height > 120) fault("sentence in a narrow column", q);
  }
  let level = 0;
  for (const h of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const now = Number(h.tagName[1]);
    if (now > level + 1) fault("heading skips a level", h);
    level = now;
  }
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  for (const t of document.querySelectorAll("table")) {
    if (!t.querySelector("thead th[scope]")) fault("table without headers", t);
    for (const r of t.querySelectorAll("tbody tr:not(.why)")) if (!r.querySelector("th[scope=row]")) fault("row without header", r);
  }
  for (const s of document.querySelectorAll(".state")) if (!/[a-z]{2}/.test(s.textContent)) fault("state by sign or color only", s);
  for (const s of document.querySelectorAll("svg[role=img]")) if (!s.getAttribute("aria-labelledby")) fault("drawing without a name", s);
  for (const a of [...document.querySelectorAll("a, summary")].slice(0, 12)) {
    if (!a.textContent.trim()) fault("link without words", a);
    a.focus();
    if (a.checkVisibility() && (document.activeElement !== a || parseFloat(getComputedStyle(a).outlineWidth) < 2)) fault("focus is not visible", a);
    a.blur();
  }
  return faults;
})
