// Draws the charts of a page. Beside each stands its Vega-Lite specification as JSON. What depends on the page is set
// here: the width, the columns of the legend, and colors that follow the page's. Charts in a closed part of the page are
// drawn when that is opened.
"use strict";
(() => {
  const MISSING = "The file charts.js, which draws the charts of this page, is missing. "
    + "Install vl-convert-python, and write the page again with the command `agglab report`.";
  const LETTER = 0.57, ROWS_MAX = 1000, PANEL_MIN = 280;
  const ERROR = 1;  // what Vega calls this level of its log
  const INK = {labelColor: "currentColor", titleColor: "currentColor"};
  const THEME = {
    background: null,
    font: "system-ui, sans-serif",
    axis: {...INK, gridColor: "#88888850", domainColor: "#888888", tickColor: "#888888"},
    header: INK,
    legend: INK,
    text: {color: "currentColor"},
    style: {halo: {stroke: "Canvas"}},
  };

  function themed(config) {
    const whole = {...config};
    for (const [name, value] of Object.entries(THEME))
      whole[name] = value && typeof value === "object" ? {...config[name], ...value} : value;
    whole.style.halo = {...config.style.halo, ...THEME.style.halo};
    return whole;
  }

  // The specification for a width in pixels. The page has the title as text, and the font of the page.
  function fitted(spec, width) {
    const {title, ...rest} = structuredClone(spec);
    rest.config = themed(rest.config);
    const size = rest.config.legend.labelFontSize;
    const column = size * (rest.usermeta.longest * LETTER + 3.3);
    const room = width - 20 - size * rest.usermeta.beside * LETTER;
    rest.config.legend.columns = Math.max(1, Math.floor(room / column));
    rest.padding = {left: 2, top: 2, right: 10, bottom: 2};
    if (rest.facet) {
      rest.columns = Math.min(rest.columns, Math.max(1, Math.floor(width / PANEL_MIN)));
      rest.spec.width = Math.max(100, (width - 60) / rest.columns - 40);
    } else {
      rest.width = width - 4;
      rest.autosize = {type: "fit-x", contains: "padding"};
    }
    return rest;
  }

  const rowsOf = spec => [spec, ...(spec.layer || [])].flatMap(part => part.data?.values || []);

  function addNumbers(figure, spec) {
    const details = document.createElement("details");
    details.className = "numbers";
    details.append(Object.assign(document.createElement("summary"), {textContent: "Numbers"}));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(table(rowsOf(spec)));
    });
    figure.querySelector(".about").before(details);
  }

  function table(rows) {
    const columns = [...new Set(rows.flatMap(Object.keys))];
    const whole = document.createElement("table");
    const add = (cells, kind) => {
      const row = whole.insertRow();
      for (const cell of cells) row.append(Object.assign(document.createElement(kind), {textContent: cell}));
    };
    add(columns, "th");
    for (const row of rows.slice(0, ROWS_MAX)) add(columns.map(column => row[column] ?? ""), "td");
    if (rows.length > ROWS_MAX) add([`${rows.length - ROWS_MAX} more rows are in the file`], "td");
    return whole;
  }

  const specs = new Map();
  const views = new Map();

  async function draw(figure) {
    const plot = figure.querySelector(".plot");
    const width = Math.floor(plot.clientWidth);
    if (!width || plot.dataset.width === String(width)) return;
    plot.dataset.width = width;
    views.get(figure)?.finalize();
    const actions = {export: true, source: false, compiled: false, editor: false};
    const options = {actions, renderer: "svg", logLevel: ERROR};
    try {
      views.set(figure, await vegaEmbed(plot, fitted(specs.get(figure), width), options));
      plot.dataset.drawn = "yes";
    } catch (error) {
      plot.textContent = String(error);
      console.error(error);
    }
  }

  async function drawAll() {
    for (const figure of specs.keys()) await draw(figure);
  }

  for (const figure of document.querySelectorAll("figure.chart")) {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    specs.set(figure, spec);
    addNumbers(figure, spec);
    if (!window.vegaEmbed) figure.querySelector(".plot").textContent = MISSING;
  }
  if (!window.vegaEmbed) return;
  document.querySelectorAll("details").forEach(fold => fold.addEventListener("toggle", drawAll));
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 200);
  });
  drawAll();
})();
