"""Conformance: the same programs, packets and scenarios on every pair of compiler and switch.

pairs (the pairs on this machine) -> packets (scripts, compared packet by packet and field by
field), scenarios (integer sums, compared bit for bit) -> command (`python -m agglab.verification
conformance`).
"""

from agglab.verification.conformance.command import main

__all__ = ["main"]
