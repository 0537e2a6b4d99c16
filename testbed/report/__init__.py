"""Figures and report.html, drawn from a result folder and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.report.figures import run_figures, sweep_figures
from testbed.report.page import page


class NoResults(Exception):
    """This is not the folder of a run; one line."""


def write(folder: Path) -> Path:
    """(Re)draw the folder and the points inside it; returns the path of report.html."""
    for point in sorted(folder.glob("point-*")):
        write(point)
    metrics = _json(folder / "metrics.json")
    events = _events(folder / "events.jsonl")
    manifest = _manifest(folder)
    figures = sweep_figures(metrics) if "points" in metrics else run_figures(metrics, events)
    scenario = folder / "scenario.yaml"
    text = scenario.read_text(encoding="utf-8") if scenario.is_file() else ""
    for name, svg in figures.items():
        (folder / name).write_text(svg, encoding="utf-8")
    report = folder / "report.html"
    name = str(manifest.get("scenario", folder.name))
    report.write_text(page(name, metrics, figures, text, manifest), encoding="utf-8")
    return report


def _manifest(folder: Path) -> dict[str, Any]:
    """A point's manifest is that of its sweep."""
    paths = [folder / "manifest.json", folder.parent / "manifest.json"]
    return next((_json(path) for path in paths if path.is_file()), {})


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NoResults(f"{path}: {error.strerror}: not the folder of a run") from None
    except ValueError:
        raise NoResults(f"{path}: is not JSON") from None
    if not isinstance(value, dict):
        raise NoResults(f"{path}: is not a JSON object")
    return value


def _events(path: Path) -> list[dict[str, Any]]:
    """The last line of a run that was killed may be cut off."""
    if not path.is_file():
        return []
    events = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            break
    return events
