"""Turns structured code into the flat list of primitives of an action. Labels become the offsets of
`_jump`."""

from __future__ import annotations

from p4native.compiler.backend import arithmetic, ir

END_OF_ACTION = 0


def assemble(body: list[ir.Statement]) -> list[ir.Primitive]:
    """Returns the primitives of an action. The offsets of jumps are absolute indices. A jump to the
    index behind the last primitive ends the action."""
    return _Assembler().run(body)


class _Assembler:
    def __init__(self) -> None:
        self.primitives: list[ir.Primitive] = []
        self.offsets: dict[int, int] = {}
        # index of a jump -> its label
        self.jumps: dict[int, int] = {}
        self._fresh = -1

    def run(self, body: list[ir.Statement]) -> list[ir.Primitive]:
        self._sequence(body)
        self.offsets[END_OF_ACTION] = len(self.primitives)
        self._thread_jumps()
        self._drop_idle_jumps()
        for index, label in self.jumps.items():
            jump = self.primitives[index]
            offset = ir.Const(self.offsets[label], 32)
            jump.parameters = (*jump.parameters, offset)
        return self.primitives

    def _label(self) -> int:
        self._fresh -= 1
        return self._fresh

    def _sequence(self, body: list[ir.Statement]) -> None:
        for statement in body:
            if isinstance(statement, ir.Primitive):
                self.primitives.append(
                    ir.Primitive(statement.position, statement.op, statement.parameters)
                )
            elif isinstance(statement, ir.If):
                self._branch(statement)
            elif isinstance(statement, ir.Goto):
                self._jump(statement, statement.label)
            elif isinstance(statement, ir.Label):
                self.offsets[statement.label] = len(self.primitives)
            else:
                assert isinstance(statement, ir.Exit), statement
                self.primitives.append(ir.Primitive(statement.position, "exit", ()))
                self._jump(statement, END_OF_ACTION)

    def _jump(self, statement: ir.Statement, label: int) -> None:
        self.jumps[len(self.primitives)] = label
        self.primitives.append(ir.Primitive(statement.position, "_jump", ()))

    def _jump_unless(self, statement: ir.If, condition: ir.Expr, label: int) -> None:
        self.jumps[len(self.primitives)] = label
        data = arithmetic.as_data(condition)
        self.primitives.append(ir.Primitive(statement.position, "_jump_if_zero", (data,)))

    def _branch(self, statement: ir.If) -> None:
        condition, then, otherwise = statement.condition, statement.then, statement.otherwise
        if not then:
            condition, then, otherwise = arithmetic.negate(condition), otherwise, then
        if len(then) == 1 and isinstance(then[0], ir.Goto) and not otherwise:
            self._jump_unless(statement, arithmetic.negate(condition), then[0].label)
            return
        other = self._label()
        self._jump_unless(statement, condition, other)
        self._sequence(then)
        if otherwise:
            end = self._label()
            if not isinstance(then[-1], (ir.Goto, ir.Exit)):
                self._jump(statement, end)
            self.offsets[other] = len(self.primitives)
            self._sequence(otherwise)
            self.offsets[end] = len(self.primitives)
        else:
            self.offsets[other] = len(self.primitives)

    def _thread_jumps(self) -> None:
        """Redirects each jump that leads to another jump to the final target. Loops that consist
        only of jumps stay as they are."""
        for index, label in self.jumps.items():
            seen = {label}
            target = self.offsets[label]
            while target in self.jumps and self.primitives[target].op == "_jump":
                label = self.jumps[target]
                if label in seen:
                    break
                seen.add(label)
                self.jumps[index] = label
                target = self.offsets[label]

    def _drop_idle_jumps(self) -> None:
        """Removes jumps to the very next primitive, which do nothing."""
        idle = [i for i in sorted(self.jumps, reverse=True) if self._is_idle(i)]
        for index in idle:
            del self.primitives[index]
            self.jumps = {_moved(i, index): x for i, x in self.jumps.items() if i != index}
            self.offsets = {x: _moved(o, index) for x, o in self.offsets.items()}

    def _is_idle(self, index: int) -> bool:
        if self.primitives[index].op != "_jump":
            return False
        return self.offsets[self.jumps[index]] == index + 1


def _moved(offset: int, removed: int) -> int:
    return offset - 1 if offset > removed else offset
