"""What OmniReduce contributes to its verification: faults of its program, its worker and the
predicted traffic (mutants/)."""

from agglab.verification.proofs import Proofs

PROOFS = Proofs()
