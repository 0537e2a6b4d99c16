"""What Libra contributes to its verification: faults of its program, its hosts and the predicted
traffic (mutants/), and random keys for the scenarios of `explore`. The scenarios have few or many
hot keys, and often so frequent samples that the hot keys change several times in a run."""

from agglab.systems.libra.keys import LibraKeys
from agglab.verification.proofs import Proofs

HOT = (0, 3, 8, 1024, 1024)
SAMPLE_EVERY = (1, 2, 2, 10)

PROOFS = Proofs(
    options=lambda chance, jobs: LibraKeys(
        hot=chance.choice(HOT), sample_every=chance.choice(SAMPLE_EVERY)
    )
)
