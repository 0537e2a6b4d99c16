"""Reports as a browser shows them, 1280 and 390 pixels wide, light and dark: nothing stands out of
the page, charts are drawn, and no script fails."""

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
from agglab.testbed.report import dygraphs
from agglab.testbed.scenario import load

BROWSER = needs.browser()
pytestmark = needs.mark("chromium")
WIDTHS = (1280, 390)
FLAGS = [
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--virtual-time-budget=2000",
    "--enable-logging=stderr",
]
DARK = "--blink-settings=preferredColorScheme=0"
LIBRARY = dygraphs.find(dygraphs.folders())
needs_library = needs.mark("libjs-dygraphs")
# Six workers: the last of eight has a grey line, which hides all others where they are equal.
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
// Pixels of a chart's own colours: grids and axes are grey.
function painted(canvas) {
  if (!canvas || !canvas.width) return 0;
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4)
    count += data[i + 3] > 0 && Math.max(data[i], data[i + 1], data[i + 2]) -
             Math.min(data[i], data[i + 1], data[i + 2]) > 60;
  return count;
}
onload = () => {
  const found = {};
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, wide = page.documentElement.clientWidth;
    const cells = [...page.querySelectorAll("td, th, li, p, h1, h2")];
    for (const fold of page.querySelectorAll("details")) fold.open = true;
    found[frame.width] = {
      page: page.documentElement.scrollWidth,
      window: wide,
      cells: cells.length,
      shown: cells.filter(c => c.getClientRects().length).length,
      beyond: cells.filter(c => c.getBoundingClientRect().right > wide + 0.5 ||
                                c.scrollWidth > c.clientWidth + 1).map(c => c.outerHTML),
      scrolled: [...page.querySelectorAll("*")].filter(
        e => e.tagName != "PRE" && e.scrollWidth > e.clientWidth + 1 && e.clientWidth &&
             getComputedStyle(e).overflowX != "visible").map(e => e.tagName + "." + e.className),
      charts: [...page.querySelectorAll("figure.zoom")].map(f => ({
        title: f.querySelector("figcaption").textContent,
        rows: Number(f.querySelector(".plot").dataset.drawn || 0),
        coloured: painted(f.querySelector("canvas")),
        legend: f.querySelector(".legend").textContent,
      })),
      chosen: [...page.querySelectorAll("figure.chosen")].map(f => {
        const shown = () => [f.querySelector(".dygraph-ylabel").textContent,
                             f.querySelector(".dygraph-xlabel").textContent,
                             f.querySelector("canvas").toDataURL()];
        const before = shown(), lists = [...f.querySelectorAll("select")];
        for (const list of lists) {
          list.selectedIndex = 1;
          list.dispatchEvent(new Event("change", {bubbles: true}));
        }
        return {before, after: shown(), second: lists.map(list => list.value)};
      }),
      svgs: [...page.querySelectorAll("figure svg")].filter(s => s.getClientRects().length).length,
      ground: getComputedStyle(page.body).backgroundColor,
      ink: getComputedStyle(page.body).color,
    };
  }
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
    wrapped = tmp_path / "wrapped.html"
    wrapped.write_text(f"<!doctype html><body>{frames}{MEASURE}</body>")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    own = [f"--user-data-dir={tmp_path / 'browser'}", f"file://{wrapped}"]
    assert BROWSER
    command = [BROWSER, *FLAGS, *flags, *root, "--window-size=1600,1000", "--dump-dom", *own]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r"MEASURED(.*)END", done.stdout)
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


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_no_page_is_wider_than_its_window(runs: Path, kind: str, tmp_path: Path) -> None:
    found = measured(latest(runs / kind) / "report.html", tmp_path)
    assert set(found) == {str(width) for width in WIDTHS}
    for width, page in found.items():
        assert page["beyond"] == [] and page["scrolled"] == [], width
        assert page["page"] <= page["window"] <= int(width)
        assert page["shown"] > 50
        assert page["svgs"] >= 1
        if LIBRARY:
            assert page["charts"]
        for chart in page["charts"]:
            assert chart["rows"] > 1 and chart["coloured"] > 100 and chart["legend"], chart
    # On the wide page every cell is to be seen; on the narrow one headings stand in the cells.
    assert found["1280"]["shown"] == found["1280"]["cells"]


def test_a_table_too_wide_is_found(runs: Path, tmp_path: Path) -> None:
    page = latest(runs / "run") / "report.html"
    (tmp_path / "bad.html").write_text(
        page.read_text().replace("max-width: 75em", "max-width: 1em")
    )
    found = measured(tmp_path / "bad.html", tmp_path)
    assert found["390"]["beyond"] and not found["1280"]["beyond"]


def test_a_dark_page_is_dark(runs: Path, tmp_path: Path) -> None:
    found = measured(latest(runs / "run") / "report.html", tmp_path, DARK)
    assert {(page["ground"], page["ink"]) for page in found.values()} == {
        ("rgb(28, 28, 28)", "rgb(221, 221, 221)")
    }


@needs_library
def test_what_the_reader_chooses_is_drawn(runs: Path, tmp_path: Path) -> None:
    found = measured(latest(runs / "sweep") / "report.html", tmp_path)
    for page in found.values():
        (chosen,) = page["chosen"]
        metric, axis = chosen["second"]
        metric_before, axis_before, drawn_before = chosen["before"]
        metric_after, axis_after, drawn_after = chosen["after"]
        assert (metric_before, metric_after) == ("allreduce.time_s.median", metric)
        assert axis_before.startswith("workload.elements") and axis_after.startswith(axis)
        assert drawn_before != drawn_after


@needs_library
def test_a_script_that_fails_is_found(runs: Path, tmp_path: Path) -> None:
    text = (latest(runs / "run") / "report.html").read_text()
    (tmp_path / "bad.html").write_text(text.replace("new Dygraph(", "new NoSuchThing("))
    with pytest.raises(AssertionError, match="NoSuchThing is not defined"):
        measured(tmp_path / "bad.html", tmp_path)
