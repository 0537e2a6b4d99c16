"""Typical wrong submissions as passive data: each is an exercise's solution with a few texts
replaced. The file wrong.yaml is a list; docs/grading.md describes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agglab.testbed.base.problems import problem_of, quote

FILE = "wrong.yaml"
KEYS = {"name", "meets", "find", "replace", "changes"}


@dataclass(frozen=True)
class Wrong:
    """A wrong submission. meets: the case that it fails first; empty in a file of mutants. text:
    what is handed in."""

    name: str
    meets: str
    text: str


def read(path: Path, solution: str) -> list[Wrong]:
    """Returns the wrong submissions of a file. solution: the text that they change. Raises
    ScenarioError if the file is wrong, or a text to be replaced does not occur exactly once."""
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise problem_of(path, f"cannot be read: {error}") from None
    if not isinstance(entries, list):
        raise problem_of(path, "is not a list")
    return [_made(path, f"[{n}]", entry, solution) for n, entry in enumerate(entries)]


def _made(path: Path, place: str, entry: Any, solution: str) -> Wrong:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or entry.keys() - KEYS:
        raise problem_of(path, "is no entry with a name", ", ".join(sorted(KEYS)), place)
    text = solution
    for find, replace in _changes(entry):
        if not isinstance(find, str) or not isinstance(replace, str) or text.count(find) != 1:
            message = f"{entry['name']}: {quote(str(find))} does not occur exactly once"
            raise problem_of(path, message, path=place)
        text = text.replace(find, replace)
    return Wrong(entry["name"], str(entry.get("meets", "")), text)


def _changes(entry: dict[str, Any]) -> Iterator[Sequence[Any]]:
    """Yields each (find, replace) of an entry."""
    for change in entry.get("changes", [entry]):
        yield change.get("find"), change.get("replace")
