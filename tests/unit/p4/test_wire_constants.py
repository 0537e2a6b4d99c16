"""Numbers that P4 programs and agents both know are the same in both."""

from __future__ import annotations

import enum
import importlib
import ipaddress
import re
from pathlib import Path
from types import ModuleType

import pytest

from agglab.hosts import wire

P4 = Path(__file__).resolve().parents[3] / "p4"
CONSTANT = re.compile(r"^const\s+\S+\s+(\w+)\s*=\s*(0x[0-9a-fA-F]+|\d+);", re.MULTILINE)
INCLUDED = re.compile(r'^#include "(\S+)"', re.MULTILINE)
SHARED = {"AGGREGATOR_IPV4", "AGGREGATOR_MAC", "AGGREGATOR_PORT", "VERSION", "RESULT"}
SUMMING = {"INT32", "SCALED", "OPENING"}
PROGRAMS: dict[str, tuple[str, set[str]]] = {
    "switchml": ("agglab.hosts.wire", SHARED | SUMMING),
    "switchml_narrow": ("agglab.hosts.wire", SHARED | SUMMING | {"NARROW16", "NARROW8", "NARROW4"}),
    "switchml_float16": ("agglab.hosts.wire", SHARED | SUMMING | {"HALF"}),
    "switchml_bfloat16": ("agglab.hosts.wire", SHARED | SUMMING | {"BFLOAT"}),
    "switchml_deadline": ("agglab.hosts.wire", SHARED | SUMMING),
    "omnireduce": (
        "agglab.systems.omnireduce.wire",
        SHARED | SUMMING | {"BARE", "FUSED", "NO_BLOCK", "NOTHING_AHEAD"},
    ),
    "atp": (
        "agglab.systems.pooling.wire",
        SHARED
        | {"INT32", "SCALED", "FLOAT32", "MISMATCH"}
        | {"RESEND", "COLLISION", "OVERFLOW", "CONGESTED", "EVICTED"},
    ),
    "libra": (
        "agglab.systems.libra.wire",
        {"AGGREGATOR_IPV4", "AGGREGATOR_MAC", "AGGREGATOR_PORT"}
        | {"HOT", "PUSH", "PULL", "LEARN", "SUM", "HOT_RESULT"},
    ),
    "netrpc": (
        "agglab.systems.netrpc.wire",
        SHARED | {"NOTHING", "ARRAY", "MAP", "NO_PLACE"},
    ),
    "mlfabric": ("agglab.systems.mlfabric.wire", {"VERSION", "SUMMED"}),
}
"""A program -> its agents' wire format, and what both have to know."""


def constants_of_p4(path: Path) -> dict[str, int]:
    """Of a file and all that it includes, whatever conditions say."""
    text = path.read_text()
    found = {name: int(value, 0) for name, value in CONSTANT.findall(text)}
    for name in INCLUDED.findall(text):
        beside = path.parent / name
        found |= constants_of_p4(beside if beside.exists() else P4 / name)
    return found


def constants_of_python(module: ModuleType) -> dict[str, int]:
    """The module's own numbers come before those that all systems share."""
    return constants_in(wire) | constants_in(module) | addresses()


def constants_in(module: ModuleType) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, enum.Enum):
            members = {each.name: each.value for each in value if isinstance(each.value, int)}
            found |= {name: members[name] for name in members.keys() - found.keys()}
        elif isinstance(value, int):
            found[name] = int(value)
    return found


def addresses() -> dict[str, int]:
    return {
        "AGGREGATOR_IPV4": int(ipaddress.IPv4Address(wire.AGGREGATOR_ADDRESS)),
        "AGGREGATOR_MAC": int(wire.AGGREGATOR_MAC.replace(":", ""), 16),
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_p4_and_agents_agree(program: str) -> None:
    module, shared = PROGRAMS[program]
    in_p4 = constants_of_p4(P4 / f"{program}.p4")
    in_python = constants_of_python(importlib.import_module(module))
    assert shared <= in_p4.keys(), "a constant that the program has lost"
    assert shared <= in_python.keys(), "a constant that the agents have lost"
    both = in_p4.keys() & in_python.keys()
    assert {name: in_p4[name] for name in both} == {name: in_python[name] for name in both}


def test_every_program_with_agents_of_its_own_is_here() -> None:
    alike = {"forwarding", "esa"}  # no agents; those of atp
    assert {path.stem for path in P4.glob("*.p4")} == PROGRAMS.keys() | alike
