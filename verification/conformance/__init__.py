"""Conformance: runs the same programs, packets and scenarios on every pair of a compiler and a
switch, and compares the results.

`scenarios` runs scenarios and compares integer sums bit for bit. `command` is the command
`python -m agglab.verification conformance`, which lets the toolchain (p4native.verification) run
the laboratory's programs and its own packet tests.
"""

from agglab.verification.conformance.command import main

__all__ = ["main"]
