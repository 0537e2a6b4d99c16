"""Gloo's part of the verification: faults of its worker and of the prediction (mutants/). It has no
virtual time, and so no schedules that could be searched."""

from agglab.verification.proofs import Proofs

PROOFS = Proofs()
