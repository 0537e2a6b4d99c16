"""Writes one page of all figures. It reads only the result folders of their runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed.report import write
from agglab.testbed.result_files import NoResults, read_object
from agglab.testbed.verdicts import UNDECIDED, verdict_of

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 1280px; margin: 0 auto; padding: 1rem; }
.clocks { display: grid; grid-template-columns: repeat(auto-fit, minmax(320px, 1fr)); gap: 1rem; }
img { width: 100%; height: auto; background: white; border-radius: 4px; }
.failed { color: #c8322b; font-weight: 600; }
"""
CLOCKS = {"mininet": "real links", "virtual": "virtual time"}


@dataclass(frozen=True)
class ShownFigure:
    """A figure on one clock, and the folder of its last run."""

    name: str
    clock: str
    folder: Path


def page(shown: Sequence[ShownFigure]) -> str:
    """Returns the page with the figures of both clocks side by side. SVG files are embedded, so
    that the page can be sent as one file."""
    parts: list[str] = []
    for name in dict.fromkeys(each.name for each in shown):
        parts += _section([each for each in shown if each.name == name])
    body = "\n".join(parts)
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
            columns.append(f"<div><h3>{CLOCKS[each.clock]}</h3><p>{escape(str(error))}</p></div>")
            continue
        if not told:
            told = True
            title = escape(str(figure.get("title", each.name)))
            yield f'<h2 id="{escape(each.name, quote=True)}">{title}</h2>'
            yield f"<p>{escape(str(figure.get('relation', '')))}</p>"
            yield f"<p><small>After {escape(str(figure.get('source', '')))}.</small></p>"
        columns.append("\n".join(_column(each, metrics)))
    if not told:
        yield f"<h2>{escape(of_name[0].name)}</h2>"
    yield f"<div class=clocks>{''.join(columns)}</div>"


def _read(folder: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the section `figure` of the scenario, and the metrics. Raises NoResults."""
    write(folder)
    try:
        tree = yaml.safe_load((folder / "scenario.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NoResults(f"{folder}/scenario.yaml: {error}") from error
    figure = tree.get("figure") if isinstance(tree, Mapping) else None
    if not isinstance(figure, Mapping):
        raise NoResults(f"{folder}/scenario.yaml: is not the scenario of a figure")
    return figure, read_object(folder / "metrics.json")


def _column(shown: ShownFigure, metrics: Mapping[str, Any]) -> Iterator[str]:
    yield f"<div><h3>{CLOCKS[shown.clock]}</h3>"
    for file in sorted(shown.folder.glob("figure-*.svg")):
        yield file.read_text(encoding="utf-8")
    if metrics.get("ok"):
        yield "<p>The relation holds.</p>"
    elif verdict_of(metrics) == UNDECIDED:
        yield f"<p class=failed>It cannot be said whether it holds: {escape(metrics['reason'])}</p>"
    else:
        yield f"<p class=failed>The relation does not hold: {escape(str(metrics['reason']))}</p>"
    report = escape(f"{shown.clock}/{shown.name}/latest/report.html", quote=True)
    yield f'<p><a href="{report}">report</a></p></div>'
