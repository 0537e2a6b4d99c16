"""Finds dygraphs (MIT license), the script that draws zoomable charts. This repository does not
contain dygraphs. If it is installed on the machine that writes a report, it is copied into the
page, together with the line that names its license. Otherwise charts are plain SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from agglab.testbed.base.command_lines import pip_install

DEBIAN = Path("/usr/share/javascript/dygraphs")
"""The folder in which Debian's package libjs-dygraphs installs it."""
WHEEL = "dygraphs"
SCRIPTS = ("dygraph.min.js", "assets/dygraph-combined.js")
STYLES = ("dygraph.min.css", "assets/dygraph.css")
SCRIPT_BYTES_MAX = 1_000_000
ENDS_TAG = re.compile(r"</(script|style)", re.IGNORECASE)
SOURCE_MAP = re.compile(r"//# sourceMappingURL=\S*|/\*# sourceMappingURL=\S* \*/")
"""Comments that name files for which a browser would look beside the page."""
INSTALL = f"apt-get install libjs-dygraphs, or {pip_install('dygraphs')}"


@dataclass(frozen=True)
class Library:
    """The parts of dygraphs that are copied into a page."""

    script: str
    style: str


def folders() -> tuple[Path, ...]:
    """Returns the folders in which dygraphs may be: Debian's, and those of a wheel."""
    try:
        spec = find_spec(WHEEL)
    except (ImportError, ValueError):
        spec = None
    return (DEBIAN, *(Path(path) for path in (spec and spec.submodule_search_locations) or ()))


def find(places: Sequence[Path]) -> Library | None:
    """Returns dygraphs from the first of these folders that contains it; None if none does."""
    for folder in places:
        script = _first(folder, SCRIPTS)
        if script and "Dygraph" in script:
            return Library(script, _first(folder, STYLES))
    return None


def _first(folder: Path, names: Sequence[str]) -> str:
    """Returns the text of the first of these files that can be read and may stand between HTML
    tags; an empty string if there is none."""
    for name in names:
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        if len(text) <= SCRIPT_BYTES_MAX and not ENDS_TAG.search(text):
            return SOURCE_MAP.sub("", text)
    return ""
