"""The P4 programs of the systems, to which malformed packets are sent."""

from __future__ import annotations

from agglab.testbed import systems
from agglab.verification import programs, proofs
from p4native.verification.fuzz import Subject

LANES, SLOTS = 64, 8
SHARE = 0.25
"""The share of all packets that go to the default system's program, which is the laboratory's main
purpose."""


def subjects() -> list[Subject]:
    """Returns the programs of all systems. Each is listed once, although the switches of several
    systems may run the same one."""
    by_program: dict[str, Subject] = {}
    for name in sorted(systems.built_in(), key=lambda name: name != systems.default()):
        source, script = programs.source(name, LANES, SLOTS), proofs.of(name).script
        subject = Subject(
            source.name,
            programs.path(name),
            script(LANES) if script else "",
            tuple(f"{key}={value}" for key, value in source.parameters.items()),
            SHARE if name == systems.default() else 0.0,
        )
        by_program.setdefault(source.name, subject)
    return list(by_program.values())
