"""STF packet tests: runs a .stf script on a P4 program and compares packets with what the script
expects.

`script` reads the text, `names` resolves its names in the program, `engine` is the switch, `run`
executes the script, and `show` prints differences. `p4native-stf
PROG.p4|PROG.json TEST.stf` and tests/packets both use this package.
"""

from p4native.stf.command import main, run_stf
from p4native.stf.engine import Engine, Library
from p4native.stf.formats import Format
from p4native.stf.frames import Expect, Packet, StfError
from p4native.stf.names import Binder, Match
from p4native.stf.run import Mismatch, Run
from p4native.stf.script import Add, Command, parse, parse_formats

__all__ = [
    "Add",
    "Binder",
    "Command",
    "Engine",
    "Expect",
    "Format",
    "Library",
    "Match",
    "Mismatch",
    "Packet",
    "Run",
    "StfError",
    "main",
    "parse",
    "parse_formats",
    "run_stf",
]
