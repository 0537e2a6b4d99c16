"""Fuzzing of what the laboratory reads: no input may cause a crash, a hang or a traceback.

- scenarios, messages, foreign: the kinds of input that the laboratory adds to those of the P4
  toolchain: scenarios, agents' control lines, datagrams for the worker, and runs with an outsider.
- systems: the programs of the systems, to which the toolchain sends malformed packets.

The toolchain's command (p4native.verification.fuzz) draws and tries all of them, and saves each
finding with its seed.
"""

from collections.abc import Sequence

import p4native.verification.fuzz as toolchain
from agglab.testbed.base.command_lines import module
from agglab.verification.fuzz.foreign import ForeignTarget
from agglab.verification.fuzz.messages import AgentTarget, DatagramTarget
from agglab.verification.fuzz.scenarios import ScenarioTarget
from agglab.verification.fuzz.systems import subjects

TARGETS: tuple[type[toolchain.Target], ...] = (
    *(ScenarioTarget, AgentTarget, DatagramTarget, ForeignTarget),
)


def main(words: Sequence[str]) -> int:
    """Runs the toolchain's command with the laboratory's kinds of input and programs, and returns
    its exit code."""
    return toolchain.main(words, f"{module('agglab.verification')} fuzz", TARGETS, subjects)


__all__ = ["TARGETS", "main"]
