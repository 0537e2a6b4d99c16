"""Conformance: the same programs, packets and scenarios on every pair of compiler and switch.

pairs (what is on this machine) -> packets (scripts, compared packet by packet and field by field),
scenarios (integer sums compared) -> command (`python -m agglab.verification conformance`).
"""

from agglab.verification.conformance.command import main

__all__ = ["main"]
