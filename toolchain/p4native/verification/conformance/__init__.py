"""Conformance: runs the same programs and packets on every pair of a compiler and a switch, and
compares the results.

- pairs: finds the pairs on this machine.
- packets: runs packet tests and compares packets field by field.
- random_case, randomised: do the same with random programs, and make small what differs.
- command: `python -m p4native.verification conformance`.

Other projects compare their own programs with `run_cases(cases(...), ...)`, on the pairs that
`announced_pairs` returns.
"""

from p4native.verification.conformance.command import announced_pairs, main, run_cases
from p4native.verification.conformance.packets import cases
from p4native.verification.conformance.pairs import Pair

__all__ = ["Pair", "announced_pairs", "cases", "main", "run_cases"]
