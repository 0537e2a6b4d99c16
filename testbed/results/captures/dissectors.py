"""Makes one Wireshark script for all programs of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agglab.testbed.run.programs.program import Program
from p4native.switch import Program as Described
from p4native.switch.wireshark import dissector

SCRIPT = "dissector.lua"
"""The script's name in a run's folder pcap/."""


def of_programs(programs: Iterable[Program]) -> str:
    """Returns one script with the dissector of each program. A protocol has its program's name; if
    several have one name, the later ones also have a number."""
    scripts: dict[str, str] = {}
    for path, source in {program.json: program.source for program in programs}.items():
        name = first = protocol_name(source.stem)
        while name in scripts:
            name = f"{first}_{len(scripts) + 1}"
        scripts[name] = dissector(Described.read(path), name)
    return "".join(f"do\n{script}end\n" for script in scripts.values())


def protocol_name(stem: str) -> str:
    """Returns a name that Wireshark allows for a protocol: lower-case letters, digits and `_`."""
    name = re.sub(r"[^a-z0-9_]", "_", stem.lower())
    return name if name[:1].isalpha() else f"p4_{name}"
