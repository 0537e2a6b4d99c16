"""The base class of all nodes of the tree, and functions that walk over nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from p4native.compiler.source import Position


@dataclass(eq=False, slots=True)
class Node:
    position: Position


def children(node: Node) -> Iterator[Node]:
    """Yields the nodes directly below a node, in the order of its fields."""
    for entry in fields(node):
        yield from _nodes_in(getattr(node, entry.name))


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple) and not isinstance(value, Position):
        for item in value:
            yield from _nodes_in(item)


def walk(node: Node) -> Iterator[Node]:
    """Yields a node and everything below it, parents first, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))
