"""Figures and report.html, drawn from a result folder and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed.report import declared
from agglab.testbed.report.figures import figures_of_several, run_figures
from agglab.testbed.report.page import page
from agglab.testbed.result_files import NoResults, read_object
from agglab.testbed.side_by_side import contenders_of

__all__ = ["NoResults", "write"]

WRONG_SHAPE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    yaml.YAMLError,
)
"""What drawing raises where a file does not hold what it should."""


def write(folder: Path) -> Path:
    """(Re)draw the folder and the runs inside it; returns the path of report.html.

    Raises NoResults for files that are missing, damaged or of another version.
    """
    metrics = read_object(folder / "metrics.json")
    events = _events(folder / "events.jsonl")
    whole, manifest = _manifest(folder)
    scenario = folder / "scenario.yaml"
    text = scenario.read_text(encoding="utf-8", errors="replace") if scenario.is_file() else ""
    name = str(manifest.get("scenario", folder.name))
    if whole != folder:
        name += f": {folder.relative_to(whole)}"
    try:
        inner = _inner(folder, metrics)
        several = "points" in metrics or "contenders" in metrics
        drawn = figures_of_several(metrics) if several else run_figures(metrics, events)
        drawn |= declared.figures(metrics, section) if (section := _figure(text)) else {}
        files = {**drawn, "report.html": page(name, metrics, drawn, text, manifest)}
    except WRONG_SHAPE as error:
        what = f"metrics.json or events.jsonl is damaged or another version's: {error!r}"
        raise NoResults(f"{folder}: {what}") from error
    for run in inner:
        write(run)
    for file, content in files.items():
        (folder / file).write_text(content, encoding="utf-8", errors="replace")
    return folder / "report.html"


def _figure(text: str) -> dict[str, Any]:
    """The section `figure` of the scenario; empty where there is none."""
    tree = yaml.safe_load(text)
    section = tree.get("figure") if isinstance(tree, dict) else None
    return section if isinstance(section, dict) else {}


def _inner(folder: Path, metrics: dict[str, Any]) -> list[Path]:
    """The folders of a sweep's points, or of contenders, that were made."""
    found = sorted(folder.glob("point-*"))
    names = contenders_of(metrics) if "contenders" in metrics else ()
    return found + [folder / name for name in names if (folder / name / "metrics.json").is_file()]


def _manifest(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The manifest and its folder: that of a sweep, or of a comparison, is all its runs'."""
    for whole in (folder, *folder.parents[:2]):
        if (whole / "manifest.json").is_file():
            return whole, read_object(whole / "manifest.json")
    return folder, {}


def _events(path: Path) -> list[dict[str, Any]]:
    """The last line of a run that was killed may be cut off."""
    if not path.is_file():
        return []
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            break
    return events
