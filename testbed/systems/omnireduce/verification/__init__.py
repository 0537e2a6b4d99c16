"""OmniReduce's part of the verification: faults of its program, its worker and its prediction
(mutants/). Its schedules are searched like those of every system."""

from agglab.verification.proofs import Proofs

PROOFS = Proofs()
