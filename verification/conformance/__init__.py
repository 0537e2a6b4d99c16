"""Conformance: runs the same programs, packets and scenarios on every pair of a compiler and a
switch, and compares the results.

`pairs` finds the pairs on this machine. `packets` runs packet tests and compares packets field by
field. `scenarios` runs scenarios and compares integer sums bit for bit. `command` is the command
`python -m agglab.verification conformance`.
"""

from agglab.verification.conformance.command import main

__all__ = ["main"]
