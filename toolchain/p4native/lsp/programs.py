"""Says to which program a file belongs. A file that is only included by others makes no sense
alone, and is analysed as a part of one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from p4native.compiler.source import read_source

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_MAIN = re.compile(r"\bmain\s*;")
MAX_CANDIDATES = 200


def program_of(path: str, texts: Mapping[str, str], includes: Iterable[str] = ()) -> str:
    """Returns the file of the program that `path` is a part of: the file itself, or one that
    includes it, in its folder, in the folder above, or among the open files.

    texts: the texts of open files by absolute path. includes: the folders of `-I`.
    """
    if _MAIN.search(_text(path, texts)):
        return path
    candidates = {name: _text(name, texts) for name in _candidates(path, texts)}
    included = {name: _included(name, text, tuple(includes)) for name, text in candidates.items()}
    programs: list[str] = []
    reached, waiting = {path}, [path]
    while waiting:
        part = waiting.pop(0)
        for name in sorted(name for name in included if part in included[name]):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
                programs += [name] * bool(_MAIN.search(candidates[name]))
    return next((name for name in programs if name in texts), next(iter(programs), path))


def _candidates(path: str, texts: Mapping[str, str]) -> list[str]:
    """Returns the files that may include one: P4 files that are open or lie near it."""
    folder = os.path.dirname(path)
    near: list[str] = []
    for place in (folder, os.path.dirname(folder)):
        try:
            with os.scandir(place) as entries:
                near += sorted(e.path for e in entries if e.name.endswith(".p4") and e.is_file())
        except OSError:
            continue
    return [*texts, *(name for name in near[:MAX_CANDIDATES] if name not in texts)]


def _text(path: str, texts: Mapping[str, str]) -> str:
    if path in texts:
        return texts[path]
    try:
        return read_source(path)
    except OSError:
        return ""


def _included(path: str, text: str, includes: tuple[str, ...]) -> set[str]:
    """Returns the files that a file may include: each name in its own folder and in those of
    `-I`."""
    folders = (os.path.dirname(path), *includes)
    names = _INCLUDE.findall(text)
    return {os.path.realpath(os.path.join(f, name)) for f in folders for name in names}
