"""A file in the scratch folder of a run, from which other programs learn how to enter the network
namespaces of its hosts and switches."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "nodes.json"


@dataclass(frozen=True)
class Node:
    """A host or switch. namespace: the inode of its network namespace. ip: a host's address."""

    namespace: int
    ip: str = ""


@dataclass(frozen=True)
class RunningNetwork:
    """The network of a run. results: the folder of the run's results."""

    results: str
    nodes: Mapping[str, Node]


def write(scratch: Path, results: Path, pids: Mapping[str, int], ips: Mapping[str, str]) -> None:
    """Writes the file. pids: a process of each node. ips: the addresses of the hosts."""
    nodes = {
        name: asdict(Node(os.stat(f"/proc/{pid}/ns/net").st_ino, ips.get(name, "")))
        for name, pid in pids.items()
    }
    (scratch / NAME).write_text(json.dumps({"results": str(results.absolute()), "nodes": nodes}))


def read(path: Path) -> RunningNetwork:
    """Returns the network that a file describes. Raises OSError if the run has just ended."""
    content = json.loads(path.read_text())
    nodes = {name: Node(**node) for name, node in content["nodes"].items()}
    return RunningNetwork(content["results"], nodes)
