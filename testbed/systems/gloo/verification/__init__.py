"""What verification has of this system: faults of its worker and of what is predicted of it
(mutants/). It has no virtual time, and so no schedules that could be searched."""

from agglab.verification.proofs import Proofs

PROOFS = Proofs()
