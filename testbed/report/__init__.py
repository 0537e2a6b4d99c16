"""Makes charts and writes report.html, from nothing but a result folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from agglab.testbed.base.command_lines import path_on_a_page
from agglab.testbed.report import chart_files, declared, interactive, network, over_time, vega
from agglab.testbed.report.chart import Chart
from agglab.testbed.report.chart_files import Figure
from agglab.testbed.report.colours import Palette
from agglab.testbed.report.figure_style import styled
from agglab.testbed.report.figures import charts_of_several, run_charts
from agglab.testbed.report.page import Content, page
from agglab.testbed.report.specification import specification
from agglab.testbed.results.files import WRONG_SHAPE, NoResults, read_events, read_object
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.results.side_by_side import contenders_of, runs_of
from agglab.testbed.run.programs.program_state import NAME as PROGRAM_FILE
from agglab.testbed.schema.shipped_scenarios import names

__all__ = ["Figure", "NoResults", "figures", "formats", "write"]

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


def write(folder: Path, section: Any = None) -> Path:
    """Writes the reports of the folder and of the runs inside it. Returns the path of the folder's
    report.html.

    section: the section `figure`, as plain values, that replaces that of the folder's scenario;
    None if it is not replaced.

    Raises NoResults for files that are missing, damaged or from another version.
    """
    path = _write(folder, section)
    vega.place(_manifest(folder)[0])
    if (asked := formats(folder, section)) and vega.is_installed():
        declared_charts = [each for each in figures(folder, section) if each.is_declared]
        with _named_damage(folder):
            list(chart_files.write(folder, declared_charts, asked))
    return path


def formats(folder: Path, section: Any = None) -> list[str]:
    """Returns the formats of files that the section `figure` asks for."""
    recorded = _recorded(folder).tree.get("figure") if section is None else section
    return declared.listed(recorded.get("format", [])) if isinstance(recorded, dict) else []


def figures(folder: Path, section: Any = None) -> list[Figure]:
    """Returns the charts of a folder. section: as for `write`. Raises NoResults."""
    metrics = read_object(folder / "metrics.json")
    with _named_damage(folder):
        return _figures(folder, metrics, _recorded(folder), section)


def _write(folder: Path, section: Any) -> Path:
    metrics = read_object(folder / "metrics.json")
    whole, manifest = _manifest(folder)
    recorded = _recorded(folder)
    name = str(manifest.get("scenario", folder.name))
    beside = path_on_a_page(folder / "scenario.yaml")
    command = _command(name, manifest, beside) if whole == folder else beside
    within = folder.relative_to(whole)
    if whole != folder:
        name += f": {within}"
    with _named_damage(folder):
        inner = _inner(folder, metrics)
        drawn = _figures(folder, metrics, recorded, section)
        choice = interactive.charts(metrics, _palette(metrics))
        logs, held = _logs(folder), _held(folder / PROGRAM_FILE)
        above = len(within.parts)
        text = page(
            Content(name, command, metrics, drawn, recorded, manifest, logs, choice, above, held)
        )
        files = {**{figure.file: figure.text for figure in drawn}, "report.html": text}
    for run in inner:
        _write(run, None)
    for file, content in files.items():
        (folder / file).write_text(content, encoding="utf-8", errors="replace")
    return folder / "report.html"


@contextmanager
def _named_damage(folder: Path) -> Iterator[None]:
    """Turns the exceptions that a file of the wrong shape causes into NoResults."""
    try:
        yield
    except WRONG_SHAPE as error:
        what = (
            "metrics.json, events.jsonl or program.json is damaged or from another version of "
            f"Agglab: {error!r}"
        )
        raise NoResults(f"{folder}: {what}") from error


def _figures(
    folder: Path, metrics: dict[str, Any], recorded: RecordedScenario, section: Any
) -> list[Figure]:
    palette = _palette(metrics)
    section = recorded.tree.get("figure") if section is None else section

    def figure(chart: Chart) -> Figure:
        kind = getattr(chart, "kind", "")
        return Figure(chart.name, specification(chart, palette), kind)

    asked = [
        Figure(each.name, styled(specification(each, palette), section), is_declared=True)
        for each in declared.charts(metrics, section, folder)
    ]
    if "points" in metrics or "contenders" in metrics:
        return [*asked, *map(figure, charts_of_several(metrics))]
    charts = run_charts(metrics, read_events(folder / "events.jsonl"))
    return [*_topology(metrics), *map(figure, [*charts, *over_time.charts(folder)])]


def _topology(metrics: dict[str, Any]) -> list[Figure]:
    if "totals" not in metrics or not metrics["links"]:
        return []
    return [Figure(network.NAME, network.specification(metrics))]


def _palette(metrics: dict[str, Any]) -> Palette:
    runs = runs_of(metrics) if "points" in metrics or "contenders" in metrics else []
    return Palette(tuple(dict.fromkeys(run.contender for run in runs if run.contender)))


def _recorded(folder: Path) -> RecordedScenario:
    scenario = folder / "scenario.yaml"
    text = scenario.read_text(encoding="utf-8", errors="replace") if scenario.is_file() else ""
    return _scenario(text)


@lru_cache(maxsize=4)
def _scenario(text: str) -> RecordedScenario:
    """Returns the scenario with this text, which is read once although several parts ask for it."""
    return RecordedScenario(text)


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
