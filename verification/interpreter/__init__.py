"""Runs P4 programs by the words of the language: an interpreter of the checked syntax tree.

It is slow and plain, and shares nothing with the compiler's back end or with the switch: what it
says about a program is a third opinion beside ours and BMv2's (docs/random-testing.md). The front
end (parser and type checker) is the compiler's own. The meaning is that of the P4_16
specification, and of BMv2's v1model where the specification leaves it to the architecture.

values -> expressions -> statements, tables, parser, externs -> machine: one program that takes
packets. Constructs that are not known raise UnknownConstruct, which names them.
May import: agglab.compiler's front end, nothing else of ours.
"""

from agglab.verification.interpreter.machine import Machine
from agglab.verification.interpreter.values import UnknownConstruct

__all__ = ["Machine", "UnknownConstruct"]
