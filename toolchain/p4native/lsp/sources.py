"""Preprocesses a program as it stands in the editor: files that are open count with their text
there, which need not be saved, wherever they are included."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.preprocess import Options, preprocess

_MARKED = re.compile(r'^# \d+ "((?:[^"\\]|\\.)+)"', re.MULTILINE)
_ROUNDS = 3
TIMEOUT_S = 2
MAX_PROGRAM_BYTES = 4 << 20


def preprocessed(
    path: str, texts: Mapping[str, str], options: Options, diagnostics: Diagnostics
) -> tuple[str | None, frozenset[str]]:
    """Returns the preprocessed text of a file, or None after errors, and the files it consists of.

    path, and the keys of texts: absolute, without symbolic links. texts: the texts of open files.
    Text and diagnostics name each file by such a path.
    """
    files = frozenset([path])
    # A file on the disk may include one that is open; the next round puts them beside each other.
    for _ in range(_ROUNDS):
        attempt = Diagnostics()
        with tempfile.TemporaryDirectory(prefix="p4native-lsp-") as folder:
            text = _in_overlay(Path(folder), path, texts, files, options, attempt)
        names = set(_MARKED.findall(text or ""))
        true = {name: _true_name(name, folder) for name in names if name.startswith("/")}
        stale = any(true[n] in texts and not n.startswith(f"{folder}/") for n in true)
        files = files | frozenset(true.values())
        if not stale:
            break
    for entry in attempt.entries:
        place = entry.position._replace(file=_true_name(entry.position.file, folder))
        message = entry.message.replace(folder, "")
        diagnostics.add(replace(entry, position=place, message=message))
    if text is None:
        return None, files
    return _MARKED.sub(lambda m: m[0].replace(m[1], true.get(m[1], m[1])), text), files


def _true_name(name: str, folder: str) -> str:
    """Returns the path of a file that the preprocessor names. folder: that of the overlay."""
    return os.path.realpath(name.removeprefix(folder)) if name.startswith("/") else name


def _in_overlay(
    folder: Path,
    path: str,
    texts: Mapping[str, str],
    files: frozenset[str],
    options: Options,
    diagnostics: Diagnostics,
) -> str | None:
    """Preprocesses a file in a folder that has the open files at their paths, and links to other
    files. What the folder lacks is taken from the disk."""
    for name in {*files, *texts}:
        copy = Path(f"{folder}{name}")
        copy.parent.mkdir(parents=True, exist_ok=True)
        if name in texts:
            copy.write_bytes(texts[name].encode("utf-8", "replace"))
        elif not copy.exists():
            copy.symlink_to(name)
    beside = [word for name in sorted(files) for word in ("-iquote", os.path.dirname(name))]
    includes = [os.path.abspath(each) for each in options.includes]
    both = tuple(word for each in includes for word in (f"{folder}{each}", each))
    flags = ("-iquote", os.path.dirname(path), *beside, *options.flags)
    laid_out = replace(options, includes=both, flags=flags)
    return preprocess(f"{folder}{path}", laid_out, diagnostics, TIMEOUT_S, MAX_PROGRAM_BYTES)
