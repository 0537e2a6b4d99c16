"""Fuzzing under sanitizers: no input may cause a crash, a hang or a traceback.

- packets (and packets.c): malformed packets through generated programs, a million in minutes.
- inputs: BMv2 JSON, P4 source, STF scripts, scenarios, P4Runtime messages, agents' control lines,
  and the worker's datagrams. Each input is a function of its kind and a seed.
- command: `python -m agglab.verification fuzz`, which runs them in several processes and saves each
  finding with its seed.

May import: compiler, hosts, switch.
"""

from agglab.verification.fuzz.command import main

__all__ = ["main"]
