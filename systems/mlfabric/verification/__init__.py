"""What MLfabric contributes to its verification: faults (mutants/), and random keys for the
scenarios of `explore`. These are the order of transfers, bounds on delay that short runs reach,
groups, and how far the replica may fall behind."""

from __future__ import annotations

from random import Random

from agglab.systems.mlfabric.keys import MlfabricKeys
from agglab.systems.mlfabric.policy import ORDERS
from agglab.verification.proofs import Proofs


def options(chance: Random, jobs: int) -> MlfabricKeys:
    """Draws the keys of the section `mlfabric` for a scenario of `explore`."""
    return MlfabricKeys(
        order=chance.choice(tuple(ORDERS)),
        bound=chance.choice((0, 1, 2, 4, 16)),
        group=chance.choice((1, 2, 4, 4)),
        ahead=chance.choice((1, 2, 4)),
        replica=chance.random() < 0.8,
        divergence=chance.choice((0.05, 0.5, 2.0)),
        silence_s=chance.choice((0.2, 0.5, 2.0)),
    )


PROOFS = Proofs(options=options)
