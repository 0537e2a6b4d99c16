"""Gloo's part of the verification: faults of its worker and of the prediction (mutants/). Gloo does
not run in virtual time, so it has no schedules that could be searched."""

from agglab.verification.proofs import Proofs

PROOFS = Proofs()
