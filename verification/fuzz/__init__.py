"""Fuzzing under sanitizers: no input may cause a crash, a hang or a traceback.

- packets (and packets.c): malformed packets that generated programs process.
- inputs, messages, names, foreign: the other kinds of input, such as BMv2 JSON, P4 source, STF
  scripts, scenarios, P4Runtime messages, agents' control lines and datagrams for the worker. A kind
  and a seed determine an input.
- command: `python -m agglab.verification fuzz`, which tries inputs in several processes and saves
  each finding with its seed.

May import: compiler, hosts, switch.
"""

from agglab.verification.fuzz.command import main

__all__ = ["main"]
