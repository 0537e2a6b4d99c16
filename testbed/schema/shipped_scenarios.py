"""Finds the scenarios that come with Agglab, and what each is about. Nothing here checks a scenario
or imports what checking needs, so that `agglab list` is quick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from agglab.testbed.base.paths import SCENARIO_FOLDER
from agglab.testbed.base.problems import Problem, ScenarioError, Where, nearest, nearest_file, quote


def find(name_or_path: str) -> Path:
    """Returns the scenario file that a user means by a path, or by the name of a file in
    scenarios/. Raises ScenarioError for an unknown name."""
    path = Path(name_or_path)
    is_path = "/" in name_or_path or path.suffix in (".yaml", ".yml")
    name = path.stem if is_path else name_or_path
    named = SCENARIO_FOLDER / f"{name}.yaml"
    if not is_path and named.is_file():
        return named
    ours = path.parent.resolve() == SCENARIO_FOLDER
    if not path.exists() and (ours or not is_path):
        what = f"unknown scenario{nearest(name, names())}"
        raise ScenarioError([Problem(Where(quote(name_or_path)), "", what, _known())])
    if not path.exists():
        near = nearest_file(name_or_path, [Path.cwd()], "*.y*ml") or nearest(path.stem, names())
        what = f"cannot read the file: No such file or directory{near}"
        raise ScenarioError([Problem(Where(name_or_path), "", what)])
    return path


def names() -> list[str]:
    """Returns the scenarios that come with Agglab."""
    return sorted(path.stem for path in SCENARIO_FOLDER.glob("*.yaml"))


def description(name: str) -> str:
    """Returns the description of a scenario that comes with Agglab; empty if it has none. The file
    is read only as far as the description. Raises ValueError if that part is not YAML."""
    try:
        with (SCENARIO_FOLDER / f"{name}.yaml").open(encoding="utf-8-sig") as file:
            entries = _top_level_entries(yaml.parse(file, Loader=yaml.SafeLoader))
            return next((text for key, text in entries if key == "description"), "")
    except (yaml.YAMLError, OSError) as error:
        raise ValueError(f"{name}: {error}") from error


def _top_level_entries(events: Iterator[yaml.Event]) -> Iterator[tuple[str, str]]:
    """Yields (key, text) of the outermost mapping's entries whose value is a scalar."""
    depth = 0
    key: str | None = None
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            depth, key = depth - 1, None
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif depth == 1 and isinstance(event, yaml.NodeEvent):
            text = event.value if isinstance(event, yaml.ScalarEvent) else ""
            if key is not None:
                yield key, text
            key = text if key is None else None


def _known() -> str:
    return f"{', '.join(names())}, or the path of a .yaml file"
