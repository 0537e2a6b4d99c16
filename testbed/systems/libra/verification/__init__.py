"""Libra's part of the verification: faults of its program, its hosts and its prediction (mutants/).
Its schedules are searched like those of every system. They have few or many hot keys, and often so
frequent samples that a run has several lists of hot keys."""

from agglab.testbed.systems.libra.keys import LibraKeys
from agglab.verification.proofs import Proofs

HOT = (0, 3, 8, 1024, 1024)
SAMPLE_EVERY = (1, 2, 2, 10)

PROOFS = Proofs(
    options=lambda chance: LibraKeys(
        hot=chance.choice(HOT), sample_every=chance.choice(SAMPLE_EVERY)
    )
)
