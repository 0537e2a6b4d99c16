"""Writes one page of all figures. It reads only the result folders of their runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed import report
from agglab.testbed.cli.figures.tested import EVERYTHING_TESTED, Untested, untested
from agglab.testbed.judge.verdicts import UNDECIDED, verdict_of
from agglab.testbed.report import embedding, vega
from agglab.testbed.report.expected import judged
from agglab.testbed.results.files import NoResults, read_object
from agglab.testbed.results.recorded_scenario import RecordedScenario

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 1280px; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
.clocks { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
@media (min-width: 60em) { .clocks { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
th { overflow-wrap: normal; text-align: left; }
.clocks > div { min-width: 0; } figure { margin: 1rem 0; }
.failed { color: #c8322b; font-weight: 600; }
.untested { color: #8a6100; font-weight: 600; }
@media (prefers-color-scheme: dark) { .failed { color: #ff8a65; } .untested { color: #e0b050; } }
"""
CLOCKS = {"mininet": "real links", "virtual": "virtual time"}


@dataclass(frozen=True)
class ShownFigure:
    """A figure on one clock, the folder of its last run, and the file that declares it."""

    name: str
    clock: str
    folder: Path
    file: Path


def page(shown: Sequence[ShownFigure]) -> str:
    """Returns the page with the figures of both clocks side by side. Charts and the scripts that
    draw them are embedded, so that the page can be sent as one file."""
    parts = [embedding.hint()]
    for name in dict.fromkeys(each.name for each in shown):
        parts += _section([each for each in shown if each.name == name])
    source = vega.script()
    library = source.read_text(encoding="utf-8") if source else ""
    body = "\n".join([*parts, embedding.whole_scripts(library)])
    return (
        "<!doctype html>\n<html lang=en><meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>Figures</title>\n<style>{STYLE}</style>\n<h1>Figures</h1>\n{body}\n</html>\n"
    )


def _section(of_name: Sequence[ShownFigure]) -> Iterator[str]:
    told = False
    columns = []
    for each in of_name:
        try:
            figure, metrics = _read(each.folder)
        except NoResults as error:
            columns.append(_never_run(each, error))
            continue
        if not told:
            told = True
            title = escape(str(figure.get("title", each.name)))
            yield f'<h2 id="{escape(each.name, quote=True)}">{title}</h2>'
            yield f"<p>{escape(str(figure.get('relation', '')))}</p>"
            yield f"<p><small>After {escape(str(figure.get('source', '')))}.</small></p>"
            if published := figure.get("published"):
                yield f"<p>Published: {escape(str(published))}</p>"
        columns.append("\n".join(_column(each, metrics)))
    if not told:
        yield f"<h2>{escape(of_name[0].name)}</h2>"
    yield f"<div class=clocks>{''.join(columns)}</div>"


def _read(folder: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the section `figure` of the scenario, and the metrics. Raises NoResults."""
    report.write(folder)
    try:
        tree = yaml.safe_load((folder / "scenario.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoResults(f"{folder}/scenario.yaml: {error}") from error
    figure = tree.get("figure") if isinstance(tree, Mapping) else None
    if not isinstance(figure, Mapping):
        raise NoResults(f"{folder}/scenario.yaml: is not the scenario of a figure")
    return figure, read_object(folder / "metrics.json")


def _never_run(shown: ShownFigure, error: NoResults) -> str:
    why = str(error) if shown.folder.exists() else "this machine has not run the figure"
    return f"<div><h3>{CLOCKS[shown.clock]}</h3><p>Not tested: {escape(why)}.</p></div>"


def _column(shown: ShownFigure, metrics: Mapping[str, Any]) -> Iterator[str]:
    yield f"<div><h3>{CLOCKS[shown.clock]}</h3>"
    for figure in report.figures(shown.folder):
        if figure.is_declared:
            yield embedding.chart(figure.spec)
    yield _verdict(shown, metrics)
    yield _measured(shown, metrics)
    link = escape(f"{shown.clock}/{shown.name}/latest/report.html", quote=True)
    yield f'<p><a href="{link}">report</a></p></div>'


def _verdict(shown: ShownFigure, metrics: Mapping[str, Any]) -> str:
    """Returns whether the relation holds, or which part of it the run did not test."""
    if verdict_of(metrics) == UNDECIDED:
        reason = escape(str(metrics["reason"]))
        return f"<p class=failed>It cannot be said whether the relation holds: {reason}</p>"
    if not metrics.get("ok"):
        return f"<p class=failed>The relation does not hold: {escape(str(metrics['reason']))}</p>"
    if missing := _untested(shown):
        rest = "What the run did test holds."
        return f"<p class=untested>Not tested: {escape(str(missing))}. {rest}</p>"
    return "<p>The relation holds.</p>"


def _untested(shown: ShownFigure) -> Untested:
    """Returns what the run left out; nothing if the figure's file is no longer there."""
    try:
        return untested(shown.file, shown.folder)
    except OSError:
        return EVERYTHING_TESTED


def _measured(shown: ShownFigure, metrics: Mapping[str, Any]) -> str:
    """Returns a table of what the relation expects of several runs, and what was measured."""
    recorded = RecordedScenario((shown.folder / "scenario.yaml").read_text(encoding="utf-8"))
    rows = "".join(
        f"<tr><td>{escape(each.metric)}</td><td>{escape(each.wanted)}</td>"
        f"<td>{escape(each.got)}</td></tr>"
        for each in judged(recorded, metrics)
    )
    head = "<tr><th>metric</th><th>expected</th><th>measured</th></tr>"
    return f"<table>{head}{rows}</table>" if rows else ""
