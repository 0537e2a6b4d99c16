"""Reports as a browser shows them, 1400 and 400 pixels wide, light and dark: nothing stands out of
the page, charts are drawn whole, no labels meet, and no script fails or comes from outside."""

from __future__ import annotations

import html
import io
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import needs
import pytest

from agglab.testbed import report
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.report import embedding, vega
from agglab.testbed.report.chart import BarChart, LineChart, Mark, Piece, Reference, Series, Track
from agglab.testbed.report.colours import Palette
from agglab.testbed.report.specification import specification
from agglab.testbed.scenario import load

BROWSER = needs.browser()
pytestmark = needs.mark("chromium")
WIDTHS = (1400, 400)
FLAGS = [
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--virtual-time-budget=60000",
    "--enable-logging=stderr",
]
DARK = "--blink-settings=preferredColorScheme=0"
needs_vega = needs.mark("vl-convert-python")
TEXT = """
name: a-scenario-whose-name-is-rather-long
backend: virtual
topology: {kind: two_tier, racks: 2, workers: 3}
links: {rate: 10mbit, loss: 1%}
switch: {lanes: 16, slots: 8}
workload: {elements: 2000, rounds: 2}
"""
SWEEP = "sweep: {workload.elements: [1000, 2000], links.rate: [10mbit, 20mbit]}\n"
MEASURE = """
<script>
const shown = element => element.getClientRects().length && element.textContent.trim();
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
                       a.top < b.bottom - 1 && b.top < a.bottom - 1;
// A label that would meet another one is there, but cannot be seen.
const visible = text => shown(text) && (text.getAttribute("opacity") ?? "1") !== "0";

function meeting(svg, role) {
  return [...svg.querySelectorAll(`.role-${role}`)].flatMap(group => {
    const texts = [...group.querySelectorAll("text")].filter(visible);
    const boxes = texts.map(text => text.getBoundingClientRect());
    return texts.filter((_, i) => boxes.slice(i + 1).some(box => meet(boxes[i], box)))
      .map(text => text.textContent);
  });
}

function chart(figure) {
  const svg = figure.querySelector(".plot svg");
  const whole = figure.querySelector(".plot").getBoundingClientRect();
  const title = figure.querySelector("figcaption").textContent;
  if (!svg) return {title, drawn: false};
  const texts = [...svg.querySelectorAll("text")].filter(visible);
  const beyond = box => box.left < whole.left - 1 || box.right > whole.right + 1 ||
                        box.top < whole.top - 1;
  return {
    title,
    drawn: true,
    described: figure.querySelector("[role=graphics-document]").getAttribute("aria-label"),
    clipped: texts.filter(t => beyond(t.getBoundingClientRect())).map(t => t.textContent),
    meeting: [...meeting(svg, "axis-label"), ...meeting(svg, "legend-label")],
    legend: [...svg.querySelectorAll(".role-legend-label text")].map(text => text.textContent),
    marks: svg.querySelectorAll(".mark-line path, .mark-rect path, .mark-symbol path").length,
    over: over(svg),
  };
}

// The labels of marks that lie on the plot, where lines are.
function over(svg) {
  const lines = [...svg.querySelectorAll(".mark-line path")].map(l => l.getBoundingClientRect());
  const labels = [...svg.querySelectorAll(".role-axis-label text")].filter(visible);
  return labels.filter(label => lines.some(line => meet(label.getBoundingClientRect(), line)))
    .map(label => label.textContent);
}

function point(frame, svg) {
  for (const mark of svg.querySelectorAll(".mark-line path, .mark-symbol path, .mark-rect path")) {
    const box = mark.getBoundingClientRect();
    const middle = {clientX: box.left + box.width / 2, clientY: box.top + box.height / 2};
    for (const type of ["pointerover", "pointermove", "mouseover", "mousemove"])
      mark.dispatchEvent(new frame.contentWindow.MouseEvent(type, {bubbles: true, ...middle}));
    const hint = frame.contentDocument.querySelector("#vg-tooltip-element");
    if (hint?.textContent) return hint.textContent;
  }
  return "";
}

async function drawn(page) {
  const plots = [...page.querySelectorAll("figure.chart .plot")];
  for (let i = 0; i < 100 && !plots.every(plot => plot.dataset.drawn || !plot.clientWidth); i++)
    await new Promise(done => setTimeout(done, 200));
}

async function measure(frame) {
  const page = frame.contentDocument, wide = page.documentElement.clientWidth;
  const cells = [...page.querySelectorAll("td, th, li, p, h1, h2, figcaption")];
  for (const fold of page.querySelectorAll("details:not(.numbers)")) fold.open = true;
  await drawn(page);
  const figures = [...page.querySelectorAll("figure.chart")];
  const lists = [...page.querySelectorAll(".plot select")];
  const pictureOf = list => list.closest("figure").querySelector("svg").outerHTML;
  const before = lists.map(pictureOf);
  const charts = figures.map(chart);
  for (const list of lists) {
    list.selectedIndex = 1;
    list.dispatchEvent(new Event("change", {bubbles: true}));
  }
  await new Promise(done => setTimeout(done, 500));
  const numbers = page.querySelector("details.numbers");
  if (numbers) numbers.open = true;
  const hints = figures.map(figure => figure.querySelector(".plot svg")).filter(Boolean)
    .map(svg => point(frame, svg));
  await new Promise(done => setTimeout(done, 500));
  return {
    page: page.documentElement.scrollWidth,
    window: wide,
    cells: cells.length,
    shown: cells.filter(c => c.getClientRects().length).length,
    beyond: cells.filter(c => c.getBoundingClientRect().right > wide + 0.5 ||
                              c.scrollWidth > c.clientWidth + 1).map(c => c.outerHTML),
    charts,
    hints,
    chosen: lists.map((list, i) => pictureOf(list) !== before[i]),
    rows: numbers ? numbers.querySelectorAll("tr").length : 0,
    hacked: Boolean(frame.contentWindow.hacked),
    foreign: page.querySelectorAll("img, svg script, svg foreignObject, svg a, iframe").length,
    ground: getComputedStyle(page.body).backgroundColor,
    ink: getComputedStyle(page.body).color,
    label: page.querySelector(".role-axis-label text") &&
           getComputedStyle(page.querySelector(".role-axis-label text")).fill,
  };
}

onload = async () => {
  const found = {};
  for (const frame of document.querySelectorAll("iframe"))
    found[frame.width] = await measure(frame);
  document.body.textContent = "MEASURED" + JSON.stringify(found) + "END";
};
</script>
"""


def measured(page: Path, tmp_path: Path, *flags: str) -> dict[str, dict[str, Any]]:
    """Of each width: of the page and its window in pixels, the cells that stand out, the charts.
    What a script complains of fails the test."""
    text = html.escape(page.read_text(), quote=True)
    frames = "".join(
        f"<iframe width={width} height=900 frameborder=0 srcdoc='{text}'></iframe>"
        for width in WIDTHS
    )
    vega.place(tmp_path)
    wrapped = tmp_path / "wrapped.html"
    wrapped.write_text(f"<!doctype html><body>{frames}{MEASURE}</body>")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    own = [f"--user-data-dir={tmp_path / 'browser'}", f"file://{wrapped}"]
    assert BROWSER
    command = [BROWSER, *FLAGS, *flags, *root, "--window-size=1600,1000", "--dump-dom", *own]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r"MEASURED(.*)END", done.stdout, re.DOTALL)
    assert found, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    return json.loads(html.unescape(found[1]))


def inflated(value: Any) -> Any:
    """The same with numbers as long as those of a large run."""
    if isinstance(value, dict):
        return {name: inflated(each) for name, each in value.items()}
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value + 12_345_678
    return value


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and a sweep, with every table there is, long numbers and long reasons."""
    folder = tmp_path_factory.mktemp("width")
    for name, more in (("run", ""), ("sweep", SWEEP)):
        (folder / "s.yaml").write_text(TEXT + more)
        run(load(folder / "s.yaml"), folder / name, [], io.StringIO())
    single = latest(folder / "run")
    metrics = json.loads((single / "metrics.json").read_text())
    for name in ("switches", "links"):
        metrics[name] = inflated(metrics[name])
    job = metrics["jobs"]["job1"]
    job["workers"] = {r: {k: inflated(v) for k, v in w.items()} for r, w in job["workers"].items()}
    (single / "metrics.json").write_text(json.dumps(metrics))
    report.write(single)
    swept = latest(folder / "sweep")
    metrics = json.loads((swept / "metrics.json").read_text())
    point = metrics["points"][1]["metrics"]
    point |= {"ok": False, "reason": "h3: worker 2 exited early and never sent chunks 1-999; " * 3}
    point["fidelity"]["verdict"] = "starved"
    (swept / "metrics.json").write_text(json.dumps(metrics))
    report.write(swept)
    return folder


def latest(results: Path) -> Path:
    (link,) = results.glob("*/latest")
    return link


def drawn_well(page: dict[str, Any]) -> bool:
    """Whether all charts of a page are drawn: nothing is clipped, and no labels meet."""
    for chart in page["charts"]:
        assert chart["drawn"] and chart["marks"], chart
        assert chart["clipped"] == [] and chart["meeting"] == [] and chart["over"] == [], chart
        assert chart["title"].split(" (")[0][:20] in chart["described"], chart
    return bool(page["charts"])


@needs_vega
@pytest.mark.long(but=["run"])
@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_no_page_is_wider_than_its_window(runs: Path, kind: str, tmp_path: Path) -> None:
    found = measured(latest(runs / kind) / "report.html", tmp_path)
    assert set(found) == {str(width) for width in WIDTHS}
    for width, page in found.items():
        assert page["beyond"] == [], width
        assert page["page"] <= page["window"] <= int(width)
        assert page["shown"] > 50 and page["rows"] > 1 and any(page["hints"])
        assert drawn_well(page)
        # A sweep's page has a chart for each of its two keys for which the reader chooses a metric.
        assert page["chosen"] == ([True, True] if kind == "sweep" else [])
    # On the wide page every cell is to be seen; on the narrow one headings stand in the cells.
    assert found["1400"]["shown"] == found["1400"]["cells"]


@pytest.mark.long
def test_a_table_too_wide_is_found(runs: Path, tmp_path: Path) -> None:
    page = latest(runs / "run") / "report.html"
    (tmp_path / "bad.html").write_text(
        page.read_text().replace("max-width: 75em", "max-width: 1em")
    )
    found = measured(tmp_path / "bad.html", tmp_path)
    assert found["400"]["beyond"] and not found["1400"]["beyond"]


@needs_vega
@pytest.mark.long
def test_a_dark_page_is_dark_and_so_are_its_charts(runs: Path, tmp_path: Path) -> None:
    page = latest(runs / "run") / "report.html"
    dark, light = (measured(page, tmp_path, *flags) for flags in ([DARK], []))
    inks = {"rgb(28, 28, 28)": "rgb(221, 221, 221)"}
    assert {page["ground"]: page["ink"] for page in dark.values()} == inks
    assert {page["label"] for page in dark.values()} == set(inks.values())
    assert {page["label"] for page in light.values()} == {"rgb(0, 0, 0)"}


HOSTILE = "<img src=x onerror='parent.hacked=hacked=1'></script><script>window.hacked=1</script>"


def page_of(*charts: LineChart | BarChart) -> str:
    parts = [embedding.chart(specification(chart, Palette())) for chart in charts]
    source = vega.script()
    assert source
    scripts = embedding.whole_scripts(source.read_text())
    return f"<!doctype html><meta charset=utf-8><body>{''.join(parts)}{scripts}"


def crowded() -> list[LineChart | BarChart]:
    """Charts with more names, ticks and marks than there is room for on a narrow page."""
    line = Piece([(i / 10, i * 1e6) for i in range(100)])
    tracks = [Track(f"worker {n} of a long name", (line,), style=f"key {n}") for n in range(16)]
    marks = [Mark(i / 2, f"fault number {i} at link h{i}-s1") for i in range(20)]
    ticks = [(float(i), f"a swept value {i}") for i in range(30)]
    steps = Piece([(at, at + 1) for at, _ in ticks])
    names = [f"direction h{n}->switch{n}" for n in range(24)]
    series = [Series(f"series {n}", [1.0] * 24) for n in range(3)]
    few = [Track("a", (Piece([(0.0, 2.3), (1.0, 2.2)]),))]
    return [
        LineChart("a", "Chunks " * 30, "seconds", "chunks", tracks, marks=marks),
        LineChart("b", "Steps", "key", "s", [Track("a", (steps,))], ticks=ticks, even=True),
        LineChart("c", "Loss of the model", "seconds", "loss", few, from_zero=False),
        BarChart("d", "Drops", "", "packets", names, series, [Reference("a bound", 0.5)]),
        BarChart("e", "Rounds", "round", "s", [str(n) for n in range(24)], series),
    ]


@needs_vega
def test_crowded_charts_are_whole_and_no_labels_meet(tmp_path: Path) -> None:
    (tmp_path / "crowded.html").write_text(page_of(*crowded()))
    found = measured(tmp_path / "crowded.html", tmp_path)
    for page in found.values():
        assert page["page"] <= page["window"] and drawn_well(page)
        assert len(page["charts"][0]["legend"]) == 32, "16 colors and 16 dashes"


@needs_vega
@pytest.mark.long
def test_labels_that_meet_are_found(tmp_path: Path) -> None:
    page = page_of(*crowded()).replace('"labelOverlap":"greedy"', '"labelOverlap":false')
    (tmp_path / "bad.html").write_text(page)
    found = measured(tmp_path / "bad.html", tmp_path)
    assert found["400"]["charts"][1]["meeting"]


@needs_vega
def test_words_from_outside_stay_words(tmp_path: Path) -> None:
    tracks = [Track(f"{HOSTILE}{n}", (Piece([(0.0, 1.0), (1.0, 2.0)]),)) for n in range(2)]
    words = (HOSTILE, HOSTILE, HOSTILE)
    ticks = [(0.0, HOSTILE), (1.0, "b")]
    lines = LineChart("a", *words, tracks, marks=[Mark(0.0, HOSTILE)], ticks=ticks, even=True)
    bars = BarChart("b", *words, [HOSTILE, "b"], [Series(HOSTILE, [1.0, 2.0])])
    (tmp_path / "hostile.html").write_text(page_of(lines, bars))
    found = measured(tmp_path / "hostile.html", tmp_path)
    for page in found.values():
        assert not page["hacked"] and page["foreign"] == 0
        assert any("<img src=x" in hint for hint in page["hints"]), "the words are shown"


@needs_vega
@pytest.mark.long
def test_a_script_that_fails_is_found(runs: Path, tmp_path: Path) -> None:
    text = (latest(runs / "run") / "report.html").read_text()
    (tmp_path / "bad.html").write_text(text.replace("await vegaEmbed(", "await noSuchThing("))
    with pytest.raises(AssertionError, match="noSuchThing is not defined"):
        measured(tmp_path / "bad.html", tmp_path)


@pytest.mark.long
def test_without_the_scripts_a_page_says_what_is_missing_and_shows_the_numbers(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vega, "place", lambda folder: None)
    text = (latest(runs / "run") / "report.html").read_text()
    (tmp_path / "plain.html").write_text(text.replace("<script src='charts.js'></script>", ""))
    found = measured(tmp_path / "plain.html", tmp_path)
    assert all(page["rows"] > 1 and not page["charts"][0]["drawn"] for page in found.values())
