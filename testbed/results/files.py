"""Reads files of result folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


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
