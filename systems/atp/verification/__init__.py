"""What ATP contributes to its verification: faults (mutants/), and random keys for the scenarios of
`explore`."""

from __future__ import annotations

from random import Random

from agglab.systems.atp.system import AtpKeys
from agglab.systems.pooling.counters import repeats_by_collisions
from agglab.systems.pooling.keys import DIVIDED, SHARED
from agglab.verification.proofs import Proofs

SCALES = (24, 30)
"""The values of `scale_log2` to choose from. With the second value, many tensors have chunks that
do not fit into integers."""


def options(chance: Random, jobs: int) -> AtpKeys:
    """Draws the keys of the section `atp` for a scenario of `explore`."""
    return AtpKeys(
        pool=chance.choice((SHARED, SHARED, DIVIDED)),
        scale_log2=chance.choice(SCALES),
        congestion_control=chance.random() < 0.5,
    )


PROOFS = Proofs(options=options, repeats=repeats_by_collisions)
