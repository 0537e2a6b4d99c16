"""Handles, during packing and unpacking, the files that a scenario names. Scenarios in a pack may
come from an untrusted source. Therefore the names in them are checked before any of these files is
read as a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from agglab.testbed import systems
from agglab.testbed.schema.document import Items, Mapping, Node, Scalar

KEYS = ("system", "program", "entries", "worker", "file", "script", "model")
"""The last words of keys that may hold a path or name code."""
CODE = ".py"
BESIDE = {".p4": ("*.p4", "*.p4i", "*.h", "include/*"), CODE: ("*.py", "*.c", "*.h")}
"""For each suffix, the files beside a file that it may include or import."""
OWN = "own"
OWN_FILES_MAX = 500
OWN_BYTES_MAX = 2**24


class CannotPack(Exception):
    """Raised for a result that cannot be packed. The message is one line."""


def scalars(node: Node, key: str = "") -> Iterator[tuple[str, str]]:
    """Yields (last word of the key, text) for every value. For a value of a sweep's axis, the word
    is the last one of the path that the axis sweeps."""
    if isinstance(node, Scalar):
        yield key, node.text
    elif isinstance(node, Items):
        for item in node.items:
            yield from scalars(item, key)
    else:
        for name, value in node.entries:
            yield from scalars(value, _last(name.text))


def rewritten(node: Node, change: Callable[[str, str], str], key: str = "") -> Node:
    """Returns a copy in which every value is replaced by `change(key, text)`."""
    if isinstance(node, Scalar):
        return replace(node, text=change(key, node.text))
    if isinstance(node, Items):
        return replace(node, items=tuple(rewritten(item, change, key) for item in node.items))
    assert isinstance(node, Mapping)
    return replace(
        node,
        entries=tuple((name, rewritten(v, change, _last(name.text))) for name, v in node.entries),
    )


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def code_in(root: Node) -> list[str]:
    """Returns the values that name Python code which comes with the pack. Only a user who trusts
    the pack's author should run it."""
    known = set(systems.names())
    found = [
        text
        for key, text in scalars(root)
        if (key in KEYS and CODE in text)
        or (key == "worker" and ":" in text)
        or (key == "system" and text not in known)
    ]
    return list(dict.fromkeys(found))


def strays(root: Node) -> list[str]:
    """Returns the values that name a file outside the pack."""
    named = (text for key, text in scalars(root) if key in KEYS and "/" in text)
    return [text for text in named if not _is_own(text)]


def _is_own(text: str) -> bool:
    path = PurePosixPath(text.partition(":")[0])
    return path.parts[:1] == (OWN,) and ".." not in path.parts


class OwnFiles:
    """Collects the files that a scenario names. files: their contents, by their path in the
    pack."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._folders: dict[Path, str] = {}

    def named(self, key: str, text: str) -> str:
        """Returns the text that replaces a value of the scenario in the pack, and collects the file
        that it names. Raises CannotPack."""
        path, colon, wanted = text.rpartition(":") if CODE + ":" in text else (text, "", "")
        file = Path(path)
        if key not in KEYS or not file.is_absolute() or not file.exists():
            return text
        inside = f"{self._folder(file)}/{file.name}"
        if file.is_dir():
            self._add_all(file, inside, ("*",))
        else:
            self._add(file, inside)
            self._add_all(file.parent, self._folder(file), BESIDE.get(file.suffix, ()))
        return f"{inside}{colon}{wanted}"

    def _folder(self, file: Path) -> str:
        """Returns the folder in the pack for this file. All files of one folder are put into the
        same folder of the pack, which has its name if it is a package."""
        is_package = (file.parent / "__init__.py").is_file()
        name = f"/{file.parent.name}" if is_package else ""
        return self._folders.setdefault(file.parent, f"{OWN}/{len(self._folders)}{name}")

    def _add_all(self, folder: Path, inside: str, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                if path.is_file():
                    self._add(path, f"{inside}/{path.relative_to(folder)}")

    def _add(self, file: Path, inside: str) -> None:
        try:
            self.files[inside] = file.read_bytes()
        except OSError as error:
            raise CannotPack(f"{file}: {error.strerror}") from None
        size = sum(map(len, self.files.values()))
        if len(self.files) > OWN_FILES_MAX or size > OWN_BYTES_MAX:
            raise CannotPack(
                f"{file.parent}: the folder of {file.name} holds more than {OWN_FILES_MAX} "
                f"files or {OWN_BYTES_MAX} bytes: move what the scenario needs to a folder of "
                "its own"
            )
