"""What ESA contributes to its verification: faults (mutants/), and random keys for the scenarios of
`explore`."""

from __future__ import annotations

from random import Random

from agglab.systems.esa.system import PRIORITY_MAX, EsaKeys
from agglab.systems.pooling.counters import repeats_by_collisions
from agglab.verification.proofs import Proofs

SCALES = (24, 30)
"""The values of `scale_log2` to choose from. With the second value, many tensors have chunks that
do not fit into integers."""


def options(chance: Random, jobs: int) -> EsaKeys:
    """Draws the keys of the section `esa` for a scenario of `explore`."""
    count = chance.randint(0, jobs)
    return EsaKeys(
        scale_log2=chance.choice(SCALES),
        congestion_control=chance.random() < 0.5,
        priorities=tuple(chance.choices((0, 1, 3, PRIORITY_MAX), k=count)),
    )


PROOFS = Proofs(options=options, repeats=repeats_by_collisions)
