"""What verification has of this system: faults of its program, its hosts and its prediction
(mutants/). Its schedules are searched as every system's are, with few hot keys or many, and with
samples so close together that lists of hot keys follow one another in one run."""

from agglab.testbed.systems.libra.keys import LibraKeys
from agglab.verification.proofs import Proofs

HOT = (0, 3, 8, 1024, 1024)
SAMPLE_EVERY = (1, 2, 2, 10)

PROOFS = Proofs(
    options=lambda chance: LibraKeys(
        hot=chance.choice(HOT), sample_every=chance.choice(SAMPLE_EVERY)
    )
)
