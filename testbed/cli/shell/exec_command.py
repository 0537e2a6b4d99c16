"""The command `agglab exec`, which runs a program at a node of a network that is up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from agglab.testbed.base import scratch
from agglab.testbed.base.errors import lacks_program
from agglab.testbed.base.problems import ScenarioError, nearest, problem_of, quote
from agglab.testbed.cli import arguments
from agglab.testbed.real import nodes_file
from agglab.testbed.real.nodes_file import RunningNetwork

NSENTER = ("nsenter", "util-linux")
SPACES = {"net": "--net", "mnt": "--mount", "pid": "--pid", "user": "--user"}


def main(words: Sequence[str]) -> int:
    """Returns the exit code of the program. Raises ScenarioError if there is no such node, and
    MachineLacks."""
    options = arguments.parse("exec", arguments.exec_, words)
    if not shutil.which(NSENTER[0]):
        raise lacks_program(*NSENTER)
    run = _chosen(options.node, options.run)
    addresses = {name: node.ip for name, node in run.nodes.items() if node.ip}
    program, *rest = options.program
    command = [program, *(addresses.get(word, word) for word in rest)]
    return _exit_code(subprocess.call([*_entering(run, options.node), *command]))


def _exit_code(status: int) -> int:
    return status if status >= 0 else 128 - status


def _chosen(node: str, results: str | None) -> RunningNetwork:
    """Returns the network that is up and has the node. results: the folder of the run's results, if
    the user has named it. Raises ScenarioError."""
    up = list(networks())
    if results is not None:
        up = [each for each in up if Path(each.results) == Path(results).resolve()]
    having = [each for each in up if node in each.nodes]
    if len(having) == 1:
        return having[0]
    if len(having) > 1:
        folders = ", ".join(each.results for each in having)
        raise problem_of(node, f"is a node of {len(having)} networks: choose with --run", folders)
    known = sorted({name for each in up for name in each.nodes})
    if not known:
        raise _nothing_is_up(node)
    raise problem_of(node, f"no such node{nearest(node, known)}", ", ".join(known))


def _nothing_is_up(node: str) -> ScenarioError:
    what = f"no network on real links of this user is up, so there is no {quote(node)}"
    return problem_of("exec", what, "a node of a run, or of a shell, that another terminal shows")


def networks() -> Iterator[RunningNetwork]:
    """Yields the networks of this user that are up."""
    for folder in scratch.in_use():
        for path in sorted(folder.glob(f"*/{nodes_file.NAME}")):
            try:
                yield nodes_file.read(path)
            except OSError:
                continue  # the run has just ended


def _entering(run: RunningNetwork, node: str) -> list[str]:
    """Returns the words that start a program at a node. Raises ScenarioError if nobody is there any
    more."""
    pid = _process_in(run.nodes[node].namespace)
    if pid is None:
        raise problem_of(node, "is going down")
    others = [
        option
        for kind, option in SPACES.items()
        if os.stat(f"/proc/{pid}/ns/{kind}").st_ino != os.stat(f"/proc/self/ns/{kind}").st_ino
    ]
    kept = ["--preserve-credentials"] if SPACES["user"] in others else []
    return ["nsenter", "--target", str(pid), *others, *kept, f"--wdns={os.getcwd()}", "--"]


def _process_in(namespace: int) -> int | None:
    """Returns the id of a process in a network namespace, given by its inode."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.stat(folder / "ns/net").st_ino == namespace:
                return int(folder.name)
        except OSError:
            continue  # it has ended, or belongs to somebody else
    return None
