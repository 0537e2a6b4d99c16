"""Makes the paths of files that a scenario names absolute, so that a copy of the scenario in
another folder means the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agglab.hosts import own_worker
from agglab.testbed import systems
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.schema import models
from agglab.testbed.schema.document import Node, Scalar, changed

Folders = Sequence[Path]
"""Folders from which relative paths are looked up: the scenario's folder, then the current one."""


def located(root: Node, folders: Folders, contenders: Sequence[str]) -> Node:
    """Returns the document of a checked scenario, with full paths."""
    for words, find in _paths(contenders):

        def full(node: Node, find: Callable[[str, Folders], str] = find) -> Node:
            if not isinstance(node, Scalar):
                return node
            return Scalar(find(node.text, folders), node.quoted, node.where)

        root = changed(root, words, full)
    return root


def _paths(contenders: Sequence[str]) -> Iterator[tuple[list[str], Callable[[str, Folders], str]]]:
    """Yields each place in the document that may hold a path, and the function that finds the
    file."""
    places: dict[str, Callable[[str, Folders], str]] = {
        "system": systems.located,
        "switch.program": _program,
        "switch.entries": _path,
        "workload.worker": own_worker.find,
        "jobs[].workload.worker": own_worker.find,
        "workload.model": models.find,
        "jobs[].workload.model": models.find,
        "workload.script": _path,
        "jobs[].workload.script": _path,
        "topology.file": _path,
    }
    for before in ([], *(["compare", name] for name in contenders)):
        for path, find in places.items():
            yield [*before, *path.split(".")], find


def _path(given: str, folders: Folders) -> str:
    found = (folder / given for folder in folders if given and (folder / given).exists())
    return str(next((path.resolve() for path in found), given))


def _program(given: str, folders: Folders) -> str:
    """Returns the full path of a program. The name of a program in p4/ is returned unchanged."""
    ours = "/" not in given and (P4_FOLDER / f"{given}.p4").is_file()
    return given if ours else _path(given, folders)
