"""Runs P4 programs as the language's specification says: an interpreter of the checked syntax tree.

It is slow and simple, and shares nothing with the compiler's back end or with the switch. Its
result for a program is therefore a third opinion next to ours and BMv2's (docs/random-testing.md).
The front end (parser and type checker) is the compiler's own. The meaning is that of the P4_16
specification, and that of BMv2's v1model where the specification leaves it to the architecture.

values -> expressions -> statements, tables, parser, externs -> machine: one program that processes
packets. Unknown constructs raise UnknownConstruct, which names them.

May import: agglab.compiler's front end, and nothing else of ours.
"""

from agglab.verification.interpreter.machine import Machine
from agglab.verification.interpreter.values import UnknownConstruct

__all__ = ["Machine", "UnknownConstruct"]
