"""What Gloo contributes to its verification: faults of its worker and of the predicted traffic
(mutants/). Gloo does not run in virtual time, so `explore` cannot search schedules of faults for
it."""

from agglab.verification.proofs import Proofs

PROOFS = Proofs()
