"""`agglab doctor`: shows what this machine has, what does not work because something is missing,
and how to get it.

The requirements of a run come from `agglab.testbed.real.lacks`, so that `agglab doctor` and
`agglab run` use the same probes and messages.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, TextIO

from agglab.testbed.base.command_lines import peers
from agglab.testbed.base.errors import C_COMPILER, MachineLacks, lacks_program
from agglab.testbed.base.exit_codes import LACKING, PASSED
from agglab.testbed.cli import arguments
from agglab.testbed.real import lacks
from agglab.testbed.real.machine import PROGRAMS
from agglab.testbed.real.targets import bmv2
from agglab.testbed.results.provenance import first_line, machine
from agglab.testbed.run.programs.program import P4C_REMEDY
from agglab.topologies import Corrupt, Direction, Duplicate, Topology, rack
from p4native.verification.peers import bmv2_trouble, p4c_trouble

CORES_WANTED = 2
MEMORY_WANTED_BYTES = 2 << 30


@dataclass(frozen=True)
class Check:
    """One line of doctor's output. needed: whether no scenario can run on real links if it fails.
    costs: what does not work if it fails."""

    name: str
    has: bool
    found: str
    needed: bool = False
    costs: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Feature:
    """A kernel feature that some scenarios need. Its topology is a small one that needs the
    feature."""

    name: str
    topology: Topology
    costs: str


@dataclass(frozen=True)
class Tool:
    """A tool that Agglab can use but does not need. Any one of its programs is enough."""

    name: str
    programs: tuple[str, ...]
    costs: str
    remedy: str
    trouble: Callable[[], str] = str
    """Why the tool does not run although it is installed; empty if it does run."""


NEEDED = rack(1, Direction(rate_bps=10**8))
"""A topology that needs only what every scenario on a real network needs."""
FEATURES = (
    Feature(
        "eBPF (XDP)",
        rack(1, Direction(impairments=(Corrupt(0.5),))),
        "bursts, periodic and listed losses, corruption and links that go down; plain `loss` works",
    ),
    Feature(
        "duplication (eBPF, clsact)",
        rack(1, Direction(impairments=(Duplicate(0.5),))),
        "duplicated packets on real links; `backend: virtual` supports them",
    ),
    Feature(
        "link delays (netem)",
        rack(1, Direction(delay_us=1000)),
        "`delay`, jitter and reordering on real links; `backend: virtual` supports them",
    ),
)
TOOLS = (
    Tool(
        "BMv2",
        ("simple_switch_grpc", "simple_switch"),
        "`target: bmv2`, and half of the conformance tests",
        bmv2.REMEDY,
        bmv2_trouble,
    ),
    Tool(
        "p4c",
        ("p4c-bm2-ss",),
        "`compiler: p4c`, and half of the conformance tests",
        P4C_REMEDY,
        p4c_trouble,
    ),
    Tool(
        "p4-utils",
        ("p4run",),
        "running an exported p4app.json",
        peers() or "see github.com/nsg-ethz/p4-utils",
    ),
    Tool(
        "tshark",
        ("tshark",),
        "reading pcap files on the terminal",
        " or ".join(filter(None, (peers(), "apt-get install tshark"))),
    ),
)


def main(words: Sequence[str], out: TextIO | None = None) -> int:
    """Runs the command. Returns 0 if scenarios can run on this machine, and 3 if something
    necessary is missing."""
    options = arguments.parse("doctor", arguments.doctor, words)
    found = list(checks())
    code = LACKING if any(check.needed and not check.has for check in found) else PASSED
    show = as_json if options.json else as_text
    print(show(found, machine()), file=sys.stdout if out is None else out)
    return code


def checks() -> Iterator[Check]:
    """Yields all checks, the most basic first."""
    basic = lacks(NEEDED)
    yield from (_needed(lack) for lack in basic) if basic else _basics()
    yield from (_feature(feature, basic) for feature in FEATURES)
    yield from (_tool(tool) for tool in TOOLS)
    yield _cores(len(os.sched_getaffinity(0)))
    yield _memory(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _basics() -> Iterator[Check]:
    """Yields the basic checks, for a machine on which `lacks` found nothing missing."""
    right = "root" if os.geteuid() == 0 else "user namespaces"
    yield Check("permission to create network namespaces", True, right, needed=True)
    yield Check("veth, tbf", True, "tried", needed=True)
    yield Check("Mininet", True, metadata.version("mininet"), needed=True)
    for program in PROGRAMS:
        yield Check(program, True, shutil.which(program) or "", needed=True)


def _needed(lack: MachineLacks) -> Check:
    everything = lack.what == lacks_program(*C_COMPILER).what
    costs = (
        "every scenario" if everything else "every scenario on real links; `backend: virtual` works"
    )
    return Check(lack.what, False, "", True, costs, lack.remedy)


def _feature(feature: Feature, basic: Sequence[MachineLacks]) -> Check:
    """Returns the check of one feature. The feature cannot be tried on a machine that lacks
    basics."""
    if basic:
        return Check(feature.name, False, "not tried, for the reason above", costs=feature.costs)
    missing = lacks(feature.topology)
    if not missing:
        return Check(feature.name, True, "tried")
    return Check(feature.name, False, "", False, feature.costs, missing[0].remedy)


def _tool(tool: Tool) -> Check:
    paths = [path for program in tool.programs if (path := shutil.which(program))]
    if not paths:
        return Check(tool.name, False, "", False, tool.costs, tool.remedy)
    if trouble := tool.trouble():
        return Check(tool.name, False, trouble, False, tool.costs, tool.remedy)
    version = first_line([paths[0], "--version"])
    return Check(tool.name, True, " ".join(paths) + (f": {version}" if version else ""))


def _cores(count: int) -> Check:
    costs = (
        "accurate times: the switch and the workers share processors, so a fast link cannot be "
        "filled"
    )
    remedy = f"give the machine {CORES_WANTED} processors, or read `fidelity` in the results"
    return Check("processors", count >= CORES_WANTED, f"{count}", False, costs, remedy)


def _memory(total_bytes: int) -> Check:
    costs = "large tensors: a run that does not fit into memory is refused"
    remedy = f"give the machine {MEMORY_WANTED_BYTES >> 30} GiB"
    enough, found = total_bytes >= MEMORY_WANTED_BYTES, f"{total_bytes / 2**30:.1f} GiB"
    return Check("memory", enough, found, False, costs, remedy)


def as_json(found: Sequence[Check], facts: dict[str, Any]) -> str:
    """Returns the checks as a JSON object: {"ok", "machine", "checks": [{"name", "has", "found",
    "needed", "costs", "remedy"}]}"""
    ok = all(check.has or not check.needed for check in found)
    answer = {"ok": ok, "machine": facts, "checks": [asdict(check) for check in found]}
    return json.dumps(answer, indent=2)


def as_text(found: Sequence[Check], facts: dict[str, Any]) -> str:
    lines = [f"{facts['system']}, Linux {facts['kernel']}, {facts['architecture']}"]
    width = max(len(check.name) for check in found)
    for check in found:
        sign = "ok   " if check.has else "lacks"
        lines.append(f"  {sign}  {check.name:<{width}}  {check.found}".rstrip())
        if not check.has:
            lines += [f"         needed for: {check.costs}"] if check.costs else []
            lines += [f"         what helps: {check.remedy}"] if check.remedy else []
    blocking = [check.name for check in found if check.needed and not check.has]
    missing = sum(not check.has for check in found)
    if blocking:
        lines.append(f"no scenario can run on real links here; missing: {', '.join(blocking)}")
    else:
        rest = (
            f"; missing but optional: {missing}, see above what each is needed for"
            if missing
            else ""
        )
        lines.append(f"scenarios can run here{rest}")
    return "\n".join(lines)
