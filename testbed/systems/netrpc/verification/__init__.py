"""What verification has of this system: faults of its program, its hosts and its prediction
(mutants/). Its schedules are searched as every system's are."""

from agglab.verification.proofs import Proofs

PROOFS = Proofs()
