"""Reads the tree of a YAML document into the immutable dataclasses of `schema.py`, and collects
every problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any, TypeVar

from agglab.testbed import systems
from agglab.testbed.base.problems import Problem, Where, nearest, quote, similar, twice
from agglab.testbed.scenario import compare, sweep_range
from agglab.testbed.scenario.expectation_reader import Subject, read_expect
from agglab.testbed.scenario.job_sweep import JOBS
from agglab.testbed.scenario.metric_names import ComparisonContext
from agglab.testbed.schema.document import Items, Mapping, Node, Scalar, nodes_at
from agglab.testbed.schema.key import default_of, key_of, yaml_name
from agglab.testbed.schema.kinds import InvalidText, Kind
from agglab.testbed.schema.scenario import Axis, Scenario, keys, swept_keys
from agglab.testbed.schema.trust import Trust
from agglab.testbed.systems.base import System

T = TypeVar("T")
SWEEP_VALUES_MAX = 4096


class Reader:
    """Reads one document. places: the position of each key that is present. system: the system
    whose own keys are allowed. contender: the contender whose run the document describes, if
    several are compared."""

    def __init__(self, root: Node, system: System | None = None, contender: str = "") -> None:
        self.root = root
        self.swept = bool(nodes_at(root, ("sweep",)))
        self.comparison = ComparisonContext(_names_of(nodes_at(root, ("compare",))), contender)
        self.system = system or systems.find(systems.default())
        self.sections = systems.sections(self.system)
        self.problems: list[Problem] = []
        self.places: dict[str, Where] = {}
        self._doubted: set[str] = set()
        self._elsewhere: set[Problem] = set()

    def scenario(self) -> Scenario:
        return self.read(Scenario)

    def read(self, cls: type[T]) -> T:
        """Reads the whole document as the section `cls`."""
        return self._section(cls, self.root, "")

    def given(self, path: str) -> bool:
        """Returns whether the document has the key at all."""
        return path in self.places

    def place(self, path: str) -> Where:
        """Returns the position of `path`, or of the nearest section around it."""
        while path and path not in self.places:
            path = path[:-1].rpartition("[")[0] if path.endswith("]") else path.rpartition(".")[0]
        return self.places.get(path, self.root.where)

    def trust(self) -> Trust:
        """Returns the Trust that knows which keys have been read without error so far."""
        own = (problem.path for problem in self.problems if problem not in self._elsewhere)
        return Trust(self._doubted.union(own))

    def adopt(self, problems: Sequence[Problem], path: str) -> None:
        """Adds the problems of a file that the key at `path` names."""
        self.problems += problems
        self._elsewhere.update(problems)
        self._doubted.add(path)

    def problem(self, where: Where, path: str, what: str, allowed: str = "") -> None:
        self.problems.append(Problem(where, path, what, allowed))

    def _section(self, cls: type[T], node: Node, path: str) -> T:
        """Reads an instance of `cls` from a mapping. A key with a wrong value gets its default, so
        that reading can continue."""
        if not isinstance(node, Mapping):
            self.problem(node.where, path, "is not a mapping", ", ".join(_names(cls)))
            return cls()
        values: dict[str, Any] = {}
        known = {yaml_name(item): item for item in _read(cls)}
        for name, child in self._distinct(node, path):
            key_path = f"{path}.{name.text}" if path else name.text
            item = known.get(name.text)
            if item is None and cls is Scenario and name.text in self.sections:
                self.places[key_path] = child.where
                section: Any = self._section(self.sections[name.text], child, key_path)
                values["options"] = (*values.get("options", ()), (name.text, section))
            elif item is None:
                what = f"unknown key{nearest(name.text, known) or _elsewhere(name.text)}"
                self.problem(name.where, key_path, what, ", ".join(known))
                if meant := similar(name.text, known):
                    self._doubted.add(f"{path}.{meant}" if path else meant)
            else:
                self.places[key_path] = child.where
                values[item.name] = self._field(item, child, key_path)
        return cls(**values)

    def _distinct(self, node: Mapping, path: str) -> list[tuple[Scalar, Node]]:
        first: dict[str, Scalar] = {}
        kept = []
        for name, child in node.entries:
            if name.text in first:
                key_path = f"{path}.{name.text}" if path else name.text
                self.problems.append(twice(name.where, key_path, first[name.text].where))
            else:
                first[name.text] = name
                kept.append((name, child))
        return kept

    def _field(self, item: Field[Any], node: Node, path: str) -> Any:
        key = key_of(item)
        if key and "many" in item.metadata:
            return self._many(key.kind, node, path)
        if key and "map" in item.metadata:
            return self._map(key.kind, node, path, item.metadata["map"] == "many")
        if key:
            return self._scalar(key.kind, node, path, default_of(item))
        if "section" in item.metadata:
            return self._section(item.metadata["section"], node, path)
        if "items" in item.metadata:
            return self._items(item.metadata["items"], node, path)
        if item.metadata["special"] == "expect":
            subject = Subject(self.system, self.swept, self.comparison)
            return read_expect(node, self.problems, self.places, subject)
        if item.metadata["special"] == "compare":
            return compare.read(node, path, self.problems)
        return self._sweep(node, path)

    def _scalar(self, kind: Kind, node: Node, path: str, default: Any) -> Any:
        if not isinstance(node, Scalar):
            what = "is a list" if isinstance(node, Items) else "is a mapping"
            self.problem(node.where, path, f"{what}, not a single value", kind.allowed)
            return default
        if not node.text and not node.quoted:
            self.problem(node.where, path, "has no value", kind.allowed)
            return default
        try:
            return kind.read(node)
        except InvalidText as error:
            self.problem(node.where, path, str(error), kind.allowed)
            return default

    def _many(self, kind: Kind, node: Node, path: str) -> tuple[Any, ...]:
        nodes = node.items if isinstance(node, Items) else (node,)
        values = [self._scalar(kind, n, f"{path}[{i}]", None) for i, n in enumerate(nodes)]
        return tuple(value for value in values if value is not None)

    def _map(self, kind: Kind, node: Node, path: str, many: bool) -> dict[str, Any]:
        if not isinstance(node, Mapping) or not node.entries:
            what = "is empty" if isinstance(node, Mapping) else "is not a mapping"
            self.problem(node.where, path, what, "name: value")
            return {}
        values = {}
        for name, child in self._distinct(node, path):
            key_path = f"{path}.{name.text}"
            self.places[key_path] = child.where
            read = self._many(kind, child, key_path) if many else None
            value = read if many else self._scalar(kind, child, key_path, None)
            if value is not None:
                values[name.text] = value
        return values

    def _items(self, cls: type[T], node: Node, path: str) -> tuple[T, ...]:
        if not isinstance(node, Items):
            self.problem(node.where, path, "is not a list", "a list of mappings")
            return ()
        for i, item in enumerate(node.items):
            self.places[f"{path}[{i}]"] = item.where
        return tuple(self._section(cls, n, f"{path}[{i}]") for i, n in enumerate(node.items))

    def _sweep(self, node: Node, path: str) -> tuple[Axis, ...]:
        if not isinstance(node, Mapping) or not node.entries:
            what = "is empty" if isinstance(node, Mapping) else "is not a mapping"
            self.problem(node.where, path, what, "dotted.key: [value, value, ...]")
            return ()
        axes = (self._axis(name, child, path) for name, child in self._distinct(node, path))
        return tuple(axis for axis in axes if axis)

    def _axis(self, name: Scalar, node: Node, path: str) -> Axis | None:
        key_path = f"{path}.{name.text}"
        known = [*swept_keys(self.sections), JOBS]
        if name.text not in known:
            what = f"unknown key {quote(name.text)}{nearest(name.text, known)}"
            self.problem(
                name.where, key_path, what, "the dotted path of a key in docs/scenarios.md"
            )
            return None
        if isinstance(node, Mapping):
            return self._range(name.text, node, key_path)
        if not isinstance(node, Items) or not node.items:
            what = "is empty" if isinstance(node, Items) else "is not a list"
            self.problem(node.where, key_path, what, "a list of values, or a range")
            return None
        scalars = [item for item in node.items if isinstance(item, Scalar)]
        if len(scalars) != len(node.items) or len(scalars) > SWEEP_VALUES_MAX:
            what = "is not a list of values" if len(scalars) < len(node.items) else "is too long"
            self.problem(node.where, key_path, what, f"at most {SWEEP_VALUES_MAX} values")
            return None
        return Axis(name.text, tuple(scalars))

    def _range(self, name: str, node: Mapping, key_path: str) -> Axis | None:
        try:
            return Axis(name, sweep_range.values(node))
        except sweep_range.RangeError as error:
            self.problem(node.where, key_path, str(error), sweep_range.ALLOWED)
            return None


def _names_of(sections: Sequence[Node]) -> tuple[str, ...]:
    """Returns the keys of these sections whose values are mappings."""
    mappings = (node for node in sections if isinstance(node, Mapping))
    return tuple(name.text for node in mappings for name, _ in node.entries)


def _elsewhere(name: str) -> str:
    """Returns `, did you mean 'links.loss'?` for a key that is given in the wrong section."""
    paths = [path for path, _, _ in keys() if path.rpartition(".")[2] == name and "[" not in path]
    return f", did you mean {' or '.join(map(quote, paths))}?" if paths else ""


def _names(cls: Any) -> list[str]:
    return [yaml_name(item) for item in _read(cls)]


def _read(cls: Any) -> list[Field[Any]]:
    """Returns those fields of the section's class that are read from keys."""
    return [item for item in fields(cls) if item.metadata.get("special") != "options"]
