// Draws every chart of a report that zooms. Its data stands beside it in the page, as JSON:
// {x, y, bands, series: [{name, colour, dashed, points: [[x, y] or [x, y, low, high], ...]}], marks, references}.
// A point without y is a gap. Charts in a closed part of the page are drawn when that is opened.
// A chart that the reader chooses has {choices: {axis: {metric: chart}}} instead, and a list for each of the two.
"use strict";
(() => {
  const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#A79B00", "#777777"];
  const REFERENCE = "#D55E00";

  const FEW_POINTS = 30;

  // 12000 is 12k, 0.3351 is 0.335: as in the tables and in SVG.
  function short(value) {
    for (const [factor, suffix] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(value) >= factor) return Number((value / factor).toPrecision(4)) + suffix;
    return String(Number(value.toPrecision(4)));
  }

  function escaped(text) {
    const node = document.createElement("span");
    node.textContent = text;
    return node.innerHTML;
  }

  // dygraphs wants rows: x, and a value of each series. null is bridged by a line, NaN is a gap.
  function rows(chart) {
    const byX = new Map();
    const width = chart.series.length;
    chart.series.forEach((series, i) => {
      for (const [x, y, low, high] of series.points) {
        if (!byX.has(x)) byX.set(x, Array(width).fill(null));
        const value = y === null ? NaN : y;
        byX.get(x)[i] = chart.bands ? [low ?? value, value, high ?? value] : value;
      }
    });
    return [...byX.keys()].sort((a, b) => a - b).map(x => [x, ...byX.get(x)]);
  }

  function under(chart) {
    return (context, area, graph) => {
      context.save();
      context.strokeStyle = context.fillStyle = REFERENCE;
      context.font = "11px system-ui, sans-serif";
      context.setLineDash([3, 3]);
      const line = (x1, y1, x2, y2) => {
        context.beginPath();
        context.moveTo(x1, y1);
        context.lineTo(x2, y2);
        context.stroke();
      };
      chart.marks.forEach(({x, text}, i) => {
        const at = graph.toDomXCoord(x);
        if (at < area.x || at > area.x + area.w) return;
        line(at, area.y, at, area.y + area.h);
        context.textAlign = at > area.x + area.w / 2 ? "right" : "left";
        context.fillText(text, at + (at > area.x + area.w / 2 ? -4 : 4), area.y + 12 + 13 * (i % 8));
      });
      for (const {name, value} of chart.references) {
        const at = graph.toDomYCoord(value);
        if (at < area.y || at > area.y + area.h) continue;
        line(area.x, at, area.x + area.w, at);
        context.textAlign = "left";
        context.fillText(name, area.x + 4, at - 4);
      }
      context.restore();
    };
  }

  function chartOf(figure) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    if (!data.choices) return data;
    const chosen = name => figure.querySelector(`select[name=${name}]`).value;
    return data.choices[chosen("axis")][chosen("metric")];
  }

  const graphs = new WeakMap();

  function draw(figure) {
    const plot = figure.querySelector(".plot");
    if (plot.dataset.drawn || !plot.clientWidth) return;
    const chart = chartOf(figure);
    const values = chart.series.flatMap(s => s.points.flatMap(([, y, , high]) => [y ?? 0, high ?? 0]));
    const top = Math.max(...values.reduce(([m], v) => [Math.max(m, v)], [0]),
                         ...chart.references.map(reference => reference.value));
    graphs.get(figure)?.destroy();
    graphs.set(figure, new Dygraph(plot, rows(chart), {
      labels: [chart.x, ...chart.series.map(series => series.name)],
      xlabel: escaped(chart.x),
      ylabel: escaped(chart.y),
      colors: chart.series.map(series => COLOURS[series.colour % COLOURS.length]),
      series: Object.fromEntries(chart.series.filter(series => series.dashed)
        .map(series => [series.name, {strokePattern: [4, 3]}])),
      connectSeparatedPoints: true,
      customBars: chart.bands,
      drawPoints: chart.series.every(series => series.points.length <= FEW_POINTS),
      pointSize: 3,
      valueRange: [0, top * 1.05 || 1],
      axisLineColor: "#888888",
      gridLineColor: "rgba(136, 136, 136, 0.3)",
      labelsDiv: figure.querySelector(".legend"),
      legend: "always",
      axes: {x: {axisLabelFormatter: short}, y: {axisLabelFormatter: short, valueFormatter: short}},
      xRangePad: 5,
      animatedZooms: false,
      underlayCallback: under(chart),
      drawCallback: graph => { plot.dataset.drawn = graph.numRows(); },
    }));
  }

  const drawAll = () => document.querySelectorAll("figure.zoom").forEach(draw);
  document.querySelectorAll("details").forEach(fold => fold.addEventListener("toggle", drawAll));
  for (const figure of document.querySelectorAll("figure.chosen"))
    figure.addEventListener("change", () => {
      delete figure.querySelector(".plot").dataset.drawn;
      draw(figure);
    });
  drawAll();
})();
