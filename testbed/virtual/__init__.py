"""Virtual time: runs the compiled program, the protocol's workers and the links in a simulation,
driven by a clock of events.

    with VirtualBackend(topology, seed, built(jsons)) as backend:   # a testbed.backend.Backend
        ...

Everything happens in one process, without root and without packets. Two runs with the same seed are
identical to the nanosecond.
"""

from agglab.testbed.virtual.backend import VirtualBackend
from agglab.testbed.virtual.clock import NeverEnds
from agglab.testbed.virtual.recordings import NOTHING, Wanted
from agglab.testbed.virtual.switches import CompiledProgram, built

__all__ = ["NOTHING", "CompiledProgram", "NeverEnds", "VirtualBackend", "Wanted", "built"]
