"""Draws figures and writes report.html, from nothing but a result folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from agglab.testbed.base.command_lines import path_on_a_page
from agglab.testbed.report import declared, dygraphs, interactive, over_time
from agglab.testbed.report.figures import figures_of_several, figures_over_time, run_figures
from agglab.testbed.report.page import Content, page
from agglab.testbed.results.files import NoResults, read_events, read_object
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.results.side_by_side import contenders_of
from agglab.testbed.run.programs.program_state import NAME as PROGRAM_FILE
from agglab.testbed.schema.shipped_scenarios import names

__all__ = ["NoResults", "write"]

FILES = (
    "scenario.yaml",
    "manifest.json",
    "metrics.json",
    "events.jsonl",
    "drops.json",
    "program.json",
    "series.csv",
    "latency.csv",
)
LOGS_MAX = 200
WRONG_SHAPE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""The exceptions that drawing raises if a file does not hold what it should."""


def write(folder: Path) -> Path:
    """Writes the reports of the folder and of the runs inside it. Returns the path of the folder's
    report.html.

    Raises NoResults for files that are missing, damaged or from another version.
    """
    return _write(folder, dygraphs.find(dygraphs.folders()))


def _write(folder: Path, library: dygraphs.Library | None) -> Path:
    metrics = read_object(folder / "metrics.json")
    events = read_events(folder / "events.jsonl")
    whole, manifest = _manifest(folder)
    scenario = folder / "scenario.yaml"
    text = scenario.read_text(encoding="utf-8", errors="replace") if scenario.is_file() else ""
    recorded = RecordedScenario(text)
    name = str(manifest.get("scenario", folder.name))
    beside = path_on_a_page(folder / "scenario.yaml")
    command = _command(name, manifest, beside) if whole == folder else beside
    if whole != folder:
        name += f": {folder.relative_to(whole)}"
    try:
        inner = _inner(folder, metrics)
        several = "points" in metrics or "contenders" in metrics
        figures = figures_of_several(metrics) if several else run_figures(metrics, events)
        figures = [*declared.figures(metrics, recorded, folder), *figures]
        figures += [] if several else figures_over_time(over_time.charts(folder))
        choice = interactive.chart(metrics)
        logs, held = _logs(folder), _held(folder / PROGRAM_FILE)
        content = Content(name, command, metrics, figures, recorded, manifest, logs, choice, held)
        files = {figure.file: figure.wide for figure in figures}
        files["report.html"] = page(content, library)
    except WRONG_SHAPE as error:
        what = (
            "metrics.json, events.jsonl or program.json is damaged or from another version of "
            f"Agglab: {error!r}"
        )
        raise NoResults(f"{folder}: {what}") from error
    for run in inner:
        _write(run, library)
    for file, content_of_file in files.items():
        (folder / file).write_text(content_of_file, encoding="utf-8", errors="replace")
    return folder / "report.html"


def _held(path: Path) -> dict[str, Any]:
    """Returns what the programs of switches held at the end; nothing if there is no such file."""
    return read_object(path) if path.is_file() else {}


def _command(name: str, manifest: dict[str, Any], beside: str) -> str:
    """Returns the arguments with which `agglab run` repeats this run. They are the name and
    settings of a scenario that comes with Agglab, or else `beside`, the scenario file beside the
    report."""
    settings = manifest.get("settings", [])
    if name not in names() or Path(str(manifest.get("source", ""))).name != f"{name}.yaml":
        return beside
    return shlex.join([name, *(word for each in settings for word in ("--set", str(each)))])


def _logs(folder: Path) -> list[str]:
    """Returns the files to which the report links, relative to the folder."""
    named = [name for name in FILES if (folder / name).is_file()]
    below = (folder / name for name in ("logs", "pcap"))
    found = (path for place in below for path in sorted(place.glob("*")) if path.is_file())
    return [*named, *(str(path.relative_to(folder)) for path in found)][:LOGS_MAX]


def _inner(folder: Path, metrics: dict[str, Any]) -> list[Path]:
    """Returns the existing folders of a sweep's points or of a comparison's contenders."""
    found = sorted(folder.glob("point-*"))
    names = contenders_of(metrics) if "contenders" in metrics else ()
    return found + [folder / name for name in names if (folder / name / "metrics.json").is_file()]


def _manifest(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Returns the manifest and its folder. All runs of a sweep or comparison share one manifest."""
    for whole in (folder, *folder.parents[:2]):
        if (whole / "manifest.json").is_file():
            return whole, read_object(whole / "manifest.json")
    return folder, {}
