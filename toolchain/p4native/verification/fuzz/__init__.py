"""Fuzzing under sanitizers: no input may cause a crash, a hang or a traceback.

- target: what a kind of input is. A kind and a seed determine an input.
- inputs, names, runtime_requests: the kinds for BMv2 JSON, P4 source, packet tests, hostile names
  and P4Runtime requests.
- packets (and packets.c): malformed packets that generated programs process.
- attempts: tries the inputs of one kind in a process, and saves each finding with its seed.
- command: `python -m p4native.verification fuzz`, which spreads the inputs over several processes.

Other projects derive classes from Target for their own inputs, describe their own programs as
Subjects, and give both to `main`, which tries them as it tries the toolchain's.
"""

from p4native.verification.fuzz.command import main
from p4native.verification.fuzz.packets import Subject
from p4native.verification.fuzz.target import Target

__all__ = ["Subject", "Target", "main"]
