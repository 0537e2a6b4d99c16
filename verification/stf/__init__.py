"""STF packet tests: runs a .stf script on a P4 program and compares packets with what the script
expects.

`script` reads the text, `names` resolves its names in the program, `engine` is the switch, `run`
executes the script, and `show` prints differences. `python -m agglab.verification stf
PROG.p4|PROG.json TEST.stf` and tests/packets both use this package.

May import: compiler, switch.
"""

from agglab.verification.stf.command import main, run_stf
from agglab.verification.stf.engine import Engine, Library
from agglab.verification.stf.names import Binder, Match
from agglab.verification.stf.run import Mismatch, Run
from agglab.verification.stf.script import Command, Expect, Packet, StfError, parse

__all__ = [
    "Binder",
    "Command",
    "Engine",
    "Expect",
    "Library",
    "Match",
    "Mismatch",
    "Packet",
    "Run",
    "StfError",
    "main",
    "parse",
    "run_stf",
]
