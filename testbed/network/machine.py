"""What this machine offers, probed rather than guessed, before anything is started."""

from __future__ import annotations

from testbed.network.errors import MachineLacks
from topologies import Topology


def lacks(topology: Topology) -> list[MachineLacks]:
    """Everything missing for this topology, most basic first; empty when it can run. Under 100 ms.

    Raise the first, or print them all; exit code 3.
    """
    raise NotImplementedError
