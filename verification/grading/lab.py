"""Reads an exercise: the file lab.yaml in its folder, which docs/grading.md describes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agglab.testbed.base.problems import Problem, ScenarioError, nearest
from agglab.testbed.schema import document
from agglab.testbed.schema.document import Items, Node, Scalar
from agglab.testbed.schema.kinds import integer
from agglab.verification.grading import wrong
from agglab.verification.grading.wrong import Wrong

FILE = "lab.yaml"
COMPILES = "compiles"
KINDS_OF = {
    ".p4": ("stf", "scenario"),
    ".py": ("python",),
    ".yaml": ("has", "expect", "broken_by"),
    ".stf": ("mutants",),
}
"""The keys that say how a case is judged, by the suffix of what is handed in. A case has one."""
KINDS = tuple(kind for kinds in KINDS_OF.values() for kind in kinds)
CASE_KEYS = ("id", *KINDS, "settings", "schedules", "registers", "says", "instead")
T = TypeVar("T")


@dataclass(frozen=True)
class Remark:
    """What is said instead of a case's diagnosis, if what went wrong shows a certain mistake. when:
    the values that each symptom may have (symptoms.py names the symptoms)."""

    id: str
    when: Mapping[str, tuple[str, ...]]
    says: str


UNDROPPED = Remark(
    "undropped",
    {"came": ("undropped",)},
    "The switch should have sent nothing, but the packet left by port 0, where nobody is. Port 0 is"
    " the value that `egress_spec` begins with. A packet that is to go nowhere has to be dropped on"
    " every way through the program: `mark_to_drop(standard_metadata)`.",
)
LACKING = Remark(
    "lacking",
    {},
    "The program lacks something that Agglab fills in or looks at. Leave the names of tables, their"
    " keys, actions and parameters as they are in the skeleton. A table that is never applied does"
    " not get into the compiled program.",
)
UNRUNNABLE = Remark("unrunnable", {}, "The program compiles, but the switch cannot run it.")
GENERAL = (UNDROPPED, LACKING, UNRUNNABLE)
"""What may be said about any P4 program."""


@dataclass(frozen=True)
class Case:
    """One thing that is judged. says: the diagnosis, in a student's words.

    kind: one of KINDS. path: the file of the case; the lab's folder if the student's own scenario
    is judged. settings: KEY=VALUE of the scenario. keys: which keys the student's scenario needs.
    schedules: how many seeds, from 1 on, the scenario is run with; 0 for the seed that it states.
    registers: cells such as `sums[0]` that are shown before and after the packet that went wrong.
    remarks: what may be said instead; the first that fits is.
    """

    id: str
    kind: str
    path: Path
    says: str
    settings: tuple[str, ...] = ()
    schedules: int = 0
    registers: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A part of an exercise. Its cases share its points equally."""

    name: str
    points: float
    cases: tuple[Case, ...]

    @property
    def names(self) -> list[str]:
        """The ids of its cases. A part without cases, such as `compiles`, is its own only case."""
        return [case.id for case in self.cases] or [self.name]


@dataclass(frozen=True)
class Lab:
    """An exercise. file: the name of what a student hands in."""

    folder: Path
    title: str
    file: str
    idea: str
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def points(self) -> float:
        return sum(part.points for part in self.parts)

    @property
    def kind(self) -> str:
        """The suffix of what is handed in."""
        return Path(self.file).suffix

    @property
    def texts(self) -> dict[str, str]:
        """All that can be said to a submission, by the id of the case or remark."""
        cases = [case for part in self.parts for case in part.cases]
        remarks = [*GENERAL, *(each for case in cases for each in case.remarks)]
        return {each.id: each.says for each in remarks} | {case.id: case.says for case in cases}

    def wrong(self) -> list[Wrong]:
        """Returns the exercise's typical wrong submissions; none without a file of them. Raises
        ScenarioError."""
        path, solution = self.folder / wrong.FILE, self.find("solution.*")
        if solution is None or not path.is_file():
            return []
        return wrong.read(path, solution.read_text(encoding="utf-8"))

    def find(self, pattern: str) -> Path | None:
        """Returns the first file of the folder that matches, such as `solution.*`."""
        return next(iter(sorted(self.folder.glob(pattern))), None)


def read(folder: Path) -> Lab:
    """Reads the exercise in a folder. Raises ScenarioError with everything that is wrong."""
    folder = folder.resolve()
    reader = _Reader(folder)
    lab = reader.lab(document.read_file(folder / FILE))
    if reader.problems:
        raise ScenarioError(reader.problems)
    return lab


class _Reader:
    """Reads one lab.yaml and collects its problems."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kinds: Sequence[str] = KINDS
        self.problems: list[Problem] = []

    def lab(self, root: Node) -> Lab:
        keys = self._mapping(root, "", ("title", "file", "idea", "parts"))
        file = self._text(keys, "file", root)
        if Path(file).name != file or Path(file).suffix not in KINDS_OF:
            self._problem(keys.get("file", root), "file", "is not a file name", " ".join(KINDS_OF))
        self._kinds = KINDS_OF.get(Path(file).suffix, KINDS)
        parts = self._items(keys.get("parts", root), "parts", self._part)
        self._unique([case for part in parts for case in part.cases], root)
        compiles = Part(COMPILES, 1, ())
        title, idea = (self._text(keys, name, root) for name in ("title", "idea"))
        return Lab(self._folder, title, file, idea, (compiles, *parts))

    def _part(self, node: Node, path: str) -> Part:
        keys = self._mapping(node, path, ("name", "points", "cases"))
        points = self._whole(keys, "points", node, path, 1)
        cases = self._items(keys.get("cases", node), f"{path}.cases", self._case)
        return Part(self._text(keys, "name", node, path), points, tuple(cases))

    def _case(self, node: Node, path: str) -> Case:
        keys = self._mapping(node, path, CASE_KEYS)
        chosen = [kind for kind in self._kinds if kind in keys]
        if len(chosen) != 1:
            message = f"has {len(chosen)} of the keys that say how a case is judged"
            self._problem(node, path, message, ", ".join(self._kinds))
        kind = chosen[0] if chosen else self._kinds[0]
        return Case(
            self._text(keys, "id", node, path),
            kind,
            self._path(keys, kind, node, path),
            " ".join(self._text(keys, "says", node, path).split()),
            (
                *self._settings(keys.get("settings"), f"{path}.settings"),
                *self._settings(keys.get("broken_by"), f"{path}.broken_by"),
                *_expectations(keys),
            ),
            self._whole(keys, "schedules", node, path, 0),
            self._texts(keys.get("registers"), f"{path}.registers"),
            self._remarks(keys.get("instead"), f"{path}.instead", kind),
            self._texts(keys.get("has"), f"{path}.has"),
        )

    def _remarks(self, node: Node | None, path: str, kind: str) -> tuple[Remark, ...]:
        if kind != "stf":
            if node is not None:
                self._problem(node, path, "is only for cases with packets", "stf")
            return ()
        own = () if node is None else self._items(node, path, self._remark)
        return (*own, UNDROPPED)

    def _remark(self, node: Node, path: str) -> Remark:
        keys = self._mapping(node, path, ("id", "when", "says"))
        when = keys.get("when", node)
        if when is node or not isinstance(when, document.Mapping) or not when.entries:
            self._problem(when, f"{path}.when", "is not a mapping of symptoms", "{came: nothing}")
            return Remark("", {}, "")
        values = {
            name.text: self._texts(value, f"{path}.when.{name.text}")
            for name, value in when.entries
        }
        says = " ".join(self._text(keys, "says", node, path).split())
        return Remark(self._text(keys, "id", node, path), values, says)

    def _path(self, keys: Mapping[str, Node], kind: str, node: Node, path: str) -> Path:
        if kind in KINDS_OF[".yaml"] or kind not in keys:
            return self._folder
        given = self._folder / self._text(keys, kind, node, path)
        if not given.is_file():
            self._problem(keys[kind], f"{path}.{kind}", f"{given} does not exist")
        return given

    def _settings(self, node: Node | None, path: str) -> tuple[str, ...]:
        if node is None:
            return ()
        if not isinstance(node, document.Mapping):
            self._problem(node, path, "is not a mapping", "{links.loss: 1%}")
            return ()
        return tuple(f"{name.text}={_in_one_line(value)}" for name, value in node.entries)

    def _mapping(self, node: Node, path: str, allowed: Sequence[str]) -> dict[str, Node]:
        """Returns the values of a mapping by key. Unknown keys are problems."""
        if not isinstance(node, document.Mapping):
            self._problem(node, path, "is not a mapping", ", ".join(allowed))
            return {}
        for name, _ in node.entries:
            if name.text not in allowed:
                message = f"unknown key{nearest(name.text, allowed)}"
                self._problem(name, f"{path}.{name.text}".lstrip("."), message, ", ".join(allowed))
        return {name.text: value for name, value in node.entries}

    def _items(self, node: Node, path: str, read: Callable[[Node, str], T]) -> tuple[T, ...]:
        if not isinstance(node, Items) or not node.items:
            self._problem(node, path, "is not a list of mappings")
            return ()
        return tuple(read(item, f"{path}[{n}]") for n, item in enumerate(node.items))

    def _text(self, keys: Mapping[str, Node], name: str, around: Node, path: str = "") -> str:
        value = keys.get(name)
        if isinstance(value, Scalar) and value.text.strip():
            return value.text.strip()
        place = f"{path}.{name}".lstrip(".")
        self._problem(value or around, place, "is missing" if value is None else "is not a text")
        return ""

    def _texts(self, node: Node | None, path: str) -> tuple[str, ...]:
        nodes = node.items if isinstance(node, Items) else () if node is None else (node,)
        texts = [each.text for each in nodes if isinstance(each, Scalar)]
        if node is not None and len(texts) != len(nodes):
            self._problem(node, path, "is not a list of texts")
        return tuple(texts)

    def _whole(
        self, keys: Mapping[str, Node], name: str, around: Node, path: str, default: int
    ) -> int:
        node = keys.get(name)
        if node is None:
            return default
        number = integer(node.text) if isinstance(node, Scalar) else None
        if number is None or not 0 < number <= 10_000:
            self._problem(node, f"{path}.{name}", "is not a whole number from 1 to 10,000")
            return default
        return number

    def _unique(self, cases: Sequence[Case], root: Node) -> None:
        remarks = [each for case in cases for each in case.remarks if each not in GENERAL]
        ids = [*(case.id for case in cases), *(each.id for each in (*remarks, *GENERAL))]
        for name in {name for name in ids if ids.count(name) > 1}:
            self._problem(root, "parts", f"two cases or remarks have the id {name}")

    def _problem(self, node: Node, path: str, message: str, allowed: str = "") -> None:
        self.problems.append(Problem(node.where, path, message, allowed))


def _expectations(keys: Mapping[str, Node]) -> tuple[str, ...]:
    """Returns what a case of the kind `expect` demands, as a setting of the student's scenario."""
    return (f"expect={_in_one_line(keys['expect'])}",) if "expect" in keys else ()


def _in_one_line(node: Node) -> str:
    """Returns a node as YAML text without line breaks, for `--set`."""
    if isinstance(node, Scalar):
        return json.dumps(node.text) if node.quoted else node.text
    if isinstance(node, Items):
        return f"[{', '.join(map(_in_one_line, node.items))}]"
    pairs = (f"{_in_one_line(name)}: {_in_one_line(value)}" for name, value in node.entries)
    return f"{{{', '.join(pairs)}}}"
