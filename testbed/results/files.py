"""Reads files of result folders."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

WRONG_SHAPE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What code raises that meets a file of a result which does not hold what it should."""


class NoResults(Exception):
    """Raised for a folder that is not the folder of a run or cannot be read. The message is one
    line."""


def read_object(path: Path) -> dict[str, Any]:
    """Reads a JSON file that holds an object. Raises NoResults."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NoResults(f"{path}: {error.strerror}: this is not the folder of a run") from None
    except (ValueError, RecursionError):
        raise NoResults(f"{path}: is not JSON") from None
    if not isinstance(value, dict):
        raise NoResults(f"{path}: is not a JSON object")
    return value


def read_events(path: Path) -> list[dict[str, Any]]:
    """Returns the events of a run's events.jsonl; none if there is no such file. The last line of a
    run that was killed may be incomplete, so reading ends at the first line that is not a JSON
    object."""
    events: list[dict[str, Any]] = []
    if not path.is_file():
        return events
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(event, dict):
            break
        events.append(event)
    return events


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[list[str]]:
    """Yields the rows of a CSV file with these columns; none if there is no such file or it has
    others. A row that is not whole is left out, because a run that was killed may have left the
    last one so."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file)
        if next(reader, None) == list(columns):
            yield from (row for row in reader if len(row) == len(columns))
