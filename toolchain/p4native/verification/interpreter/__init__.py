"""Executes P4 programs as the language's specification says: an interpreter of the checked syntax
tree.

It is slow and simple, and shares no code with the compiler's back end or with the switch. Its
result for a program is therefore a third opinion next to those of our switch and of BMv2
(docs/random-testing.md). The front end (parser and type checker) is the compiler's own. The
interpreter follows the P4_16 specification, and BMv2's v1model where the specification leaves a
choice to the architecture.

The modules build on each other: values -> expressions -> statements, tables, parser, externs ->
machine, which runs one program on packets. A construct that the interpreter does not know raises
UnknownConstruct, which names it.

May import: p4native.compiler's front end, and nothing else of ours.
"""

from p4native.verification.interpreter.machine import Machine
from p4native.verification.interpreter.values import UnknownConstruct

__all__ = ["Machine", "UnknownConstruct"]
