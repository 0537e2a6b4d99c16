"""Fuzzing under sanitizers: whatever comes in, nothing crashes, hangs or shows a traceback.

packets (and packets.c): malformed packets through generated programs, a million in minutes.
inputs: BMv2 JSON, P4 source, STF scripts, scenarios, P4Runtime messages, agents' control lines,
the worker's datagrams; each is a function of its kind and a seed.
command: `python -m agglab.verification fuzz`, in processes; what is found is saved
with its seed.
May import: compiler, hosts, switch.
"""

from agglab.verification.fuzz.command import main

__all__ = ["main"]
