"""Finds the system that a scenario's YAML document chooses, and removes keys that were meant for
another system.

A document has layers, and each layer may change keys of those before it: the file, `--set`, a point
of the sweep, and a contender's own keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agglab.testbed import systems
from agglab.testbed.schema.document import Mapping, Node, Scalar, nodes_at, without
from agglab.testbed.systems.base import SHARED_KEYS, System

OF_A_PROGRAM = ("switch.program", "switch.entries")


def stated(root: Node) -> Node | None:
    """Returns the node of the document that states the system's name."""
    return root.get("system") if isinstance(root, Mapping) else None


def name_in(node: Node | None) -> str:
    """Returns the name at the node that `stated` found, or the default system."""
    return node.text if isinstance(node, Scalar) and node.text else systems.default()


def find(name: str, home: Path) -> System | str:
    """Returns the system, or why it cannot be used. home: the scenario's folder."""
    try:
        return systems.find(systems.located(name, (home, Path.cwd())))
    except systems.UnknownSystem as error:
        return str(error)


def left_out(layers: Sequence[Node], home: Path) -> Node:
    """Returns the last of the documents in `layers` without the keys that were meant for another
    system. A later layer may choose another system than those before it. Then the earlier layers
    may state keys that the new system does not read, the program of the previous system, and a
    section for a user's own system.

    layers: the documents that result from the first layer alone, from the first two, and so on.
    """
    root, nodes = layers[-1], [stated(layer) for layer in layers]
    above = next(i for i, node in enumerate(nodes) if node is nodes[-1])
    if not above:
        return root
    system, before = (find(name_in(node), home) for node in (nodes[-1], nodes[above - 1]))
    if isinstance(system, str):
        return root
    paths = [*OF_A_PROGRAM] if system != before else []
    if isinstance(before, System) and before.name not in systems.sections(system):
        paths.append(before.name)
    for path in SHARED_KEYS:
        if path not in system.abilities.keys:
            paths += [path, f"jobs[].{path}"] if path.startswith("workload.") else [path]
    for words in (path.split(".") for path in paths):
        root = without(root, words, nodes_at(layers[above - 1], words))
    return root
