"""Makes the parts that lower the code of a block (a parser, a control or a deparser)."""

from __future__ import annotations

from p4native.compiler.backend.assignments import Assignments
from p4native.compiler.backend.calls import Calls
from p4native.compiler.backend.comparisons import Comparisons
from p4native.compiler.backend.expressions import Expressions
from p4native.compiler.backend.externs import Externs
from p4native.compiler.backend.scope import Frame, Scope, Unit
from p4native.compiler.backend.statements import Statements


class Parts:
    """The parts that lower the code of one block. Each part is given the other parts that it
    needs."""

    def __init__(self, unit: Unit, frame: Frame) -> None:
        self.scope = scope = Scope(unit, frame)
        self.expressions = Expressions(scope)
        self.comparisons = Comparisons(scope, self.expressions)
        self.assignments = Assignments(scope, self.expressions, self.comparisons)
        self.calls = Calls(scope, self.expressions, self.assignments)
        self.statements = Statements(
            scope, self.expressions, self.comparisons, self.assignments, self.calls
        )
        self.externs = Externs(scope, self.expressions, self.assignments)
