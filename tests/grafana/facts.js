// What a page of Grafana shows, as an object. The test ids are those of @grafana/e2e-selectors, since 11.6.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const id = (start) => `[data-testid^="data-testid ${start}"]`;
  const header = "data-testid Panel header ";
  const panels = all(`section${id("Panel header ")}, section[data-testid="${header}"]`);
  const text = (e) => (e.innerText || e.getAttribute("aria-label") || "").trim().replace(/\s+/g, " ");
  const faults = [], quiet = [];
  for (const p of panels) {
    const title = p.dataset.testid.slice(header.length);
    const fault = (what) => faults.push({ panel: title, text: what });
    for (const e of all(id("Panel status error"), p)) fault(`error: ${e.getAttribute("aria-label") || text(e)}`);
    for (const e of all(id("Alert error"), p)) fault(`exception: ${text(e)}`);
    for (const e of all(`${id("Panel data error message")}, .panel-empty`, p)) quiet.push({ panel: title, text: text(e) });
  }
  const outside = (e) => !panels.some((p) => p.contains(e));
  for (const e of all(id("Alert error")).filter(outside)) faults.push({ panel: "", text: text(e) });
  const variables = all(`${id("template variable")}, [data-testid="data-testid template variable"]`).map((e) => {
    const label = e.querySelector("label");
    const whole = text(e), name = label ? text(label) : "";
    return { label: name, value: whole.startsWith(name) ? whole.slice(name.length).trim() : whole };
  });
  const links = all("a[href]").filter((e) => !outside(e) || e.matches(id("Dashboard link"))).map((e) => ({ text: text(e), url: e.href }));
  const loading = all('[aria-label="Panel loading bar"], [aria-label="Cancel query"]').length;
  return { titles: panels.map((p) => p.dataset.testid.slice(header.length)), faults, quiet, variables, links, loading };
})()
