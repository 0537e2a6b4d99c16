"""STF packet tests: a .stf script run on a P4 program, packets compared with what it expects.

script (text as values) -> names (resolved in the program) -> engine (a switch) -> run, show.
`python -m testbed stf PROG.p4|PROG.json TEST.stf` and tests/packets use it alike.
May import: compiler, switch.
"""

from testbed.stf.command import main, run_stf
from testbed.stf.engine import Engine, Library
from testbed.stf.names import Binder, Match
from testbed.stf.run import Run
from testbed.stf.script import Command, Expect, Packet, StfError, parse

__all__ = [
    "Binder",
    "Command",
    "Engine",
    "Expect",
    "Library",
    "Match",
    "Packet",
    "Run",
    "StfError",
    "main",
    "parse",
    "run_stf",
]
