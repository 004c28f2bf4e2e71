// Live updates, keyboard, selection, clocks and charts. Pages are complete without it.
"use strict";
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];

  // On narrow screens filters begin closed.
  if (innerWidth < 1040) $$(".facet[open]:not(:has(:checked))").forEach((facet) => { facet.open = false; });

  // Live: a message of the stream asks for the same page again; htmx morphs what changed.
  const address = document.body.dataset.live;
  if (address && window.EventSource) {
    const mark = $("#live"), stream = new EventSource(address);
    stream.onopen = () => { if (mark) mark.hidden = false; };
    stream.onerror = () => { if (mark) mark.hidden = true; };
    stream.addEventListener("changed", () => {
      if (document.hidden || $$("input[name=run]:checked").length) { stale = true; return; }
      refresh();
    });
    let stale = false;
    const refresh = () => {
      stale = false;
      if ($("#list")) htmx.trigger($("#list"), "input");
      else $$("[data-refresh]").forEach((part) => htmx.trigger(part, "refresh"));
    };
    document.addEventListener("visibilitychange", () => { if (!document.hidden && stale) refresh(); });
  }

  // Clocks of runs that go on.
  const clock = () => $$("[data-since]").forEach((at) => {
    const all = Math.max(0, Math.round((Date.now() - Date.parse(at.dataset.since)) / 1000));
    const hours = Math.floor(all / 3600), minutes = Math.floor(all / 60) % 60, seconds = all % 60;
    at.textContent = hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${seconds} s` : `${seconds} s`;
  });
  clock();
  setInterval(clock, 1000);

  // Selection of runs.
  const count = () => {
    const all = $("#all"), told = $("#chosen");
    if (all?.checked) $$("input[name=run]").forEach((box) => { box.checked = true; });
    const chosen = all?.checked ? Number(all.dataset.total) : $$("input[name=run]:checked").length;
    const said = all?.checked ? `All ${chosen.toLocaleString("en")} matching runs are selected` : `${chosen.toLocaleString("en")} selected`;
    if (told) told.textContent = chosen ? said : "none selected";
    $$("[data-needs]").forEach((button) => { button.disabled = chosen < Number(button.dataset.needs); });
  };
  document.addEventListener("input", (event) => {
    if (event.target.id === "all") $$("input[name=run]").forEach((box) => { box.checked = event.target.checked; });
    if (event.target.name === "run" && !event.target.checked) $("#all").checked = false;
    if (event.target.id === "all" || event.target.name === "run") { event.stopPropagation(); count(); }
  }, true);
  // After an action the list has as many rows as before, at the same place.
  document.addEventListener("submit", (event) => {
    const back = event.target.elements.back, rows = $$("#rows tr[id]").length;
    if (!back) return;
    back.disabled = event.submitter?.formMethod === "get";
    if (event.target.id === "act" && rows > 50) back.value += `${back.value.includes("?") ? "&" : "?"}rows=${rows}`;
    sessionStorage.setItem("scrolled", JSON.stringify([location.pathname, scrollY]));
  });
  const [place, height] = JSON.parse(sessionStorage.getItem("scrolled") || "[]");
  sessionStorage.removeItem("scrolled");
  if (place === location.pathname) scrollTo(0, height);
  count();
  // All runs are sent as the filters of the list, which may match more runs than it shows.
  document.addEventListener("formdata", (event) => {
    if (event.target.id !== "act" || !event.formData.has("all")) return;
    event.formData.delete("run");
    for (const [name, value] of new FormData($("#list"))) event.formData.append(name, value);
  });

  // An export filters its list by itself.
  const filter = $("[data-filters]");
  if (filter) filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/), rows = $$(filter.dataset.filters);
    rows.forEach((row) => { const text = `${row.id} ${row.textContent}`.toLowerCase(); row.hidden = !words.every((word) => text.includes(word)); });
    $(".total b").textContent = rows.filter((row) => !row.hidden).length.toLocaleString("en");
  });

  // Keyboard: / searches, j and k go through rows and steps, Enter opens one.
  const items = () => $$("#rows tr[id], details.step");
  let at = -1;
  const go = (by) => {
    const all = items();
    if (!all.length) return;
    at = Math.min(all.length - 1, Math.max(0, at + by));
    all.forEach((item, index) => item.classList.toggle("at", index === at));
    const focus = $("summary, .row-link", all[at]);
    focus.focus({ preventScroll: true });
    all[at].scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing) { if (event.key === "Escape") event.target.blur(); return; }
    if (event.key === "/") { const box = $("input[type=search]"); if (box) { event.preventDefault(); box.focus(); box.select(); } }
    else if (event.key === "j") go(1);
    else if (event.key === "k") go(-1);
    else if (event.key === "n" || event.key === "p") { const to = $(event.key === "n" ? "[rel=next]" : "[rel=prev]"); if (to) to.click(); }
  });

  // Logs open at their end, or at the line that was asked for; one that follows stays at its end.
  let atEnd = true;
  const toEnd = () => { const end = $("#log-end[data-end]"); if (end && atEnd) end.scrollIntoView({ block: "end" }); };
  toEnd();
  const line = $(".lines .at");
  if (line) line.scrollIntoView({ block: "center" });
  document.addEventListener("htmx:before:swap", () => {
    atEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 120;
  });

  // A wide search tree shows its first root, again after its width has changed.
  const trees = () => $$(".scroll > .tree").forEach((tree) => {
    const box = tree.parentElement;
    if (box.dataset.width === String(box.clientWidth)) return;
    box.dataset.width = box.clientWidth;
    box.scrollLeft = $("circle", tree).cx.baseVal.value - box.clientWidth / 2;
  });
  trees();
  addEventListener("resize", trees);

  // Charts.
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const plots = new Set();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.redraw()));
  const charts = () => window.uPlot && $$(".chart:empty").forEach((box) => {
    const chart = JSON.parse(box.dataset.chart);
    const lines = (plot) => { const told = []; chart.levels.forEach((level) => {
      const y = Math.round(plot.valToPos(level.value, "y", true)), { left, top, width, height } = plot.bbox;
      if (y < top || y > top + height) return;
      const ctx = plot.ctx, ratio = devicePixelRatio;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour(level.name);
      ctx.setLineDash([4 * ratio, 4 * ratio]);
      ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(left + width, y); ctx.stroke();
      ctx.font = `${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      ctx.textAlign = "right";
      // Where lines are close, each name is written left of those before.
      const at = told.filter((other) => Math.abs(other.y - y) < 14 * ratio).reduce((x, other) => Math.min(x, other.x), left + width - 4 * ratio);
      ctx.fillText(level.name, at, y - 4 * ratio);
      told.push({ y, x: at - ctx.measureText(level.name).width - 10 * ratio });
      ctx.restore();
    }); };
    // Colours are functions, which are asked again when the scheme has changed.
    const soft = () => colour("soft"), rule = { stroke: () => colour("line"), width: 1 };
    const axis = { stroke: soft, grid: rule, ticks: rule, font: "12px sans-serif" };
    const plot = new uPlot({
      width: box.clientWidth || 600, height: box.clientHeight || 260,
      scales: { x: { time: false, range: chart.x_range }, y: { range: chart.range } },
      axes: [{ ...axis, label: chart.x, labelSize: 22, labelFont: "12px sans-serif" }, { ...axis, size: 64, label: chart.series.length === 1 ? chart.series[0].label : undefined, labelSize: 20, labelFont: "12px sans-serif" }],
      legend: { show: chart.series.length > 1 },
      series: [{ label: chart.x }, ...chart.series.map((one) => ({
        label: one.label, stroke: () => colour(one.colour), width: one.width ?? 2, alpha: one.alpha, class: one.class, spanGaps: true,
        paths: one.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: one.points, size: 7, fill: () => colour(one.colour) },
      }))],
      bands: (chart.bands || []).map((one) => ({ series: one.series, fill: () => `${colour(one.colour)}22` })),
      hooks: { draw: [lines] },
    }, chart.data, box);
    plots.forEach((one) => one.root.isConnected || plots.delete(one));
    plots.add(plot);
    new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: 260 })).observe(box);
  });
  charts();

  document.addEventListener("htmx:after:swap", () => { clock(); count(); charts(); trees(); toEnd(); });
})();
