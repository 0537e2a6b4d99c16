"""Parses YAML text into a tree of Scalar, Items and Mapping, which keep their line numbers. Size,
depth and alias expansion are limited.

Scalars remain text in this tree. The key to which a scalar belongs decides what it means
(`kinds.py`). Therefore YAML's own guesses (`on` is true, `1:30` is 90, `1e6` is text) have no
effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import yaml

from agglab.testbed.base.problems import Problem, ScenarioError, Where, quote

BYTES_MAX = 100_000
NODES_MAX = 5_000
DEPTH_MAX = 12
STRING, SEQUENCE, MAPPING = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map"))


@dataclass(frozen=True)
class Scalar:
    text: str
    quoted: bool
    where: Where


@dataclass(frozen=True)
class Items:
    items: tuple[Node, ...]
    where: Where


@dataclass(frozen=True)
class Mapping:
    """The entries of a mapping, in the file's order. Keys may be repeated; the reader reports
    this."""

    entries: tuple[tuple[Scalar, Node], ...]
    where: Where

    def get(self, key: str) -> Node | None:
        return next((node for name, node in self.entries if name.text == key), None)


Node: TypeAlias = "Scalar | Items | Mapping"


def read_file(path: Path) -> Node:
    """Returns the tree of the YAML file at `path`. Raises ScenarioError."""
    source = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise _error(Where(source), f"cannot read the file: {error.strerror}") from None
    except ValueError:
        raise _error(Where(source), "cannot read the file: its name is not valid") from None
    if len(raw) > BYTES_MAX:
        raise _error(Where(source), f"is larger than {BYTES_MAX} bytes")
    return parse(_decode(raw, source), source)


def parse(text: str, source: str) -> Node:
    """Returns the tree of one YAML document. Raises ScenarioError."""
    try:
        _check_depth(text, source)
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, source) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise _error(Where(source, line), what) from None
    except (ValueError, OverflowError):
        # PyYAML lets chr() fail on escapes beyond Unicode ("\UFFFFFFFF").
        raise _error(Where(source), "not YAML: an escape names no character") from None
    if root is None:
        raise _error(Where(source), "is empty", "a mapping, see docs/scenarios.md")
    return _Converter(source).convert(root, 0)


def with_value(node: Node, path: str, value: Node) -> Node:
    """Returns a copy of the tree with `value` at the dotted `path`. Missing sections are created.
    The words after `expect.` are a metric's path and form one key, dots included."""
    key, _, rest = path.partition(".")
    if not isinstance(node, Mapping):
        node = Mapping((), value.where)
    if rest:
        below = node.get(key) or Mapping((), value.where)
        if key == "expect" and isinstance(below, Mapping):
            value = _with_entry(below, Scalar(rest, False, value.where), value)
        else:
            value = with_value(below, rest, value)
    return _with_entry(node, Scalar(key, False, value.where), value)


def overlaid(node: Node, over: Node) -> Node:
    """Returns a copy of the tree merged with another tree. Mappings are merged; everything else is
    replaced."""
    if not isinstance(node, Mapping) or not isinstance(over, Mapping):
        return over
    for name, value in over.entries:
        below = node.get(name.text)
        node = _with_entry(node, name, value if below is None else overlaid(below, value))
    return node


def nodes_at(node: Node, words: Sequence[str]) -> list[Node]:
    """Returns the nodes of the tree at the path of keys in `words`; `jobs[]` stands for every item
    of a list."""
    if not words:
        return [node]
    key = words[0].removesuffix("[]")
    below = node.get(key) if isinstance(node, Mapping) else None
    if below is None:
        return []
    items = below.items if key != words[0] and isinstance(below, Items) else (below,)
    return [found for item in items for found in nodes_at(item, words[1:])]


def changed(node: Node, words: Sequence[str], change: Callable[[Node], Node | None]) -> Node:
    """Returns a copy of the tree in which `change` is applied to each node that `nodes_at` finds.
    If `change` returns None, the node is removed."""
    if isinstance(node, Items):
        return replace(node, items=tuple(changed(item, words, change) for item in node.items))
    if not isinstance(node, Mapping):
        return node
    key, *rest = words
    entries: list[tuple[Scalar, Node]] = []
    for name, below in node.entries:
        if name.text != key.removesuffix("[]"):
            entries.append((name, below))
        elif (new := changed(below, rest, change) if rest else change(below)) is not None:
            entries.append((name, new))
    return replace(node, entries=tuple(entries))


def without(node: Node, words: Sequence[str], these: Sequence[Node]) -> Node:
    """Returns a copy of the tree without those nodes at the path that are in `these`."""
    return changed(node, words, lambda old: None if any(old is gone for gone in these) else old)


def written(node: Node) -> str:
    """Returns the tree as YAML text that reads back the same."""
    return str(yaml.serialize(_Writer().node(node), Dumper=yaml.SafeDumper, allow_unicode=True))


class _Writer:
    """Converts the tree to PyYAML's nodes."""

    def __init__(self) -> None:
        self._resolver = yaml.SafeLoader("")

    def node(self, node: Node) -> yaml.Node:
        if isinstance(node, Scalar):
            return self._scalar(node)
        if isinstance(node, Items):
            items = [self.node(item) for item in node.items]
            return yaml.SequenceNode(SEQUENCE, items, flow_style=not items)
        pairs = [(self.node(name), self.node(value)) for name, value in node.entries]
        return yaml.MappingNode(MAPPING, pairs, flow_style=not pairs)

    def _scalar(self, scalar: Scalar) -> yaml.ScalarNode:
        """Returns a plain scalar with the tag that YAML would guess from its text, so that PyYAML
        writes it without quotes."""
        if scalar.quoted:
            return yaml.ScalarNode(STRING, scalar.text, style="'")
        tag = self._resolver.resolve(yaml.ScalarNode, scalar.text, (True, False))
        return yaml.ScalarNode(tag, scalar.text)


def _with_entry(node: Mapping, name: Scalar, value: Node) -> Mapping:
    """Returns a copy with one value under the key, at the key's previous position or at the end."""
    places = [i for i, (old, _) in enumerate(node.entries) if old.text == name.text]
    kept = [entry for i, entry in enumerate(node.entries) if i not in places]
    kept.insert(places[0] if places else len(kept), (name, value))
    return replace(node, entries=tuple(kept))


class _Converter:
    """Converts PyYAML's nodes to the tree. It counts nodes, because an alias shows the same node
    many times."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.count = 0

    def convert(self, node: yaml.Node, depth: int) -> Node:
        where = Where(self.source, node.start_mark.line + 1)
        self.count += 1
        if self.count > NODES_MAX or depth > DEPTH_MAX:
            raise _error(where, f"has more than {NODES_MAX} values or {DEPTH_MAX} levels")
        if isinstance(node, yaml.ScalarNode):
            _check_tag(node, where)
            return Scalar(node.value, node.style is not None, where)
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self.convert(item, depth + 1) for item in node.value), where)
        assert isinstance(node, yaml.MappingNode)
        return Mapping(tuple(self._entry(k, v, depth + 1) for k, v in node.value), where)

    def _entry(self, key: yaml.Node, value: yaml.Node, depth: int) -> tuple[Scalar, Node]:
        name = self.convert(key, depth)
        if not isinstance(name, Scalar):
            raise _error(name.where, "a key must be a word, not a list or a mapping")
        return name, self.convert(value, depth)


def _check_tag(node: yaml.ScalarNode, where: Where) -> None:
    if node.tag and not node.tag.startswith("tag:yaml.org,2002:"):
        raise _error(where, f"the YAML tag {quote(node.tag)} is not allowed in scenarios")


def _check_depth(text: str, source: str) -> None:
    """Raises ScenarioError if the document is nested too deeply. This must be checked before
    composing, because PyYAML's composer is recursive and its parser is not."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_MAX:
            assert event.start_mark is not None
            where = Where(source, event.start_mark.line + 1)
            raise _error(where, f"is nested more than {DEPTH_MAX} levels deep")


def _decode(raw: bytes, source: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{raw[error.start]:02x} is not UTF-8 text"
        raise _error(Where(source, line), what, "YAML in UTF-8") from None


def _syntax_error(error: yaml.MarkedYAMLError, source: str) -> ScenarioError:
    begin = error.context_mark
    mark = error.problem_mark or begin
    what = f"not YAML: {error.problem or error.context}"
    if begin and error.problem and error.context:
        what += f" ({error.context}, begun in line {begin.line + 1})"
    return _error(Where(source, mark.line + 1 if mark else None), what)


def _error(where: Where, what: str, allowed: str = "") -> ScenarioError:
    return ScenarioError([Problem(where, "", what, allowed)])
