"""Checks that follow control flow. They find missing returns, unreachable statements, values that
may be unset, and headers that are or may be invalid.

The checks follow the variables and `out` parameters of a body (action, function, apply block, or
all states of a parser), field by field, but not stacks and unions. A reported problem is certain or
occurs on one of two branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.check.blocks import FINAL_STATES, targets
from p4native.compiler.check.context import Context
from p4native.compiler.check.paths import Path, Place, Places, leaves, merge
from p4native.compiler.typed import CallInfo, CallKind, TypedProgram


class _Flow:
    def __init__(self, context: Context, touched: set[ast.Node] | None = None) -> None:
        """Prepares the checks of one body. touched: the declarations that the actions around this
        body may change."""
        self.context = context
        self.program: TypedProgram = context.program
        self.touched = touched or set()
        self.returns: list[Path] = []
        self.header_fields: set[Place] = set()
        self.silent = False

    def body(
        self,
        node: ast.Declaration,
        parameters: tuple[ast.Parameter, ...],
        block: ast.Block,
        variables: tuple[ast.Declaration, ...] = (),
    ) -> Path:
        start = self.declared(variables, self.outputs(parameters))
        end = self.statements(block.statements, start)
        self.check_outputs(node, parameters, merge([*self.returns, end]))
        return end

    def outputs(self, parameters: tuple[ast.Parameter, ...]) -> Path:
        """Returns the state at the beginning of a body with these parameters: what is unset and
        which headers are invalid."""
        path = Path()
        for parameter in parameters:
            if parameter.direction == "out":
                path = self.fresh(parameter, path)
        return path

    def check_outputs(
        self, node: ast.Declaration, parameters: tuple[ast.Parameter, ...], end: Path
    ) -> None:
        for parameter in parameters:
            missing = self._missing(Place(parameter), end)
            if parameter.direction == "out" and missing is not None and not end.ended:
                self.warn(
                    parameter,
                    "uninitialized-out-param",
                    f"out parameter '{missing}' may have no value when '{node.name}' ends",
                    "assign to it on every path to the end",
                )

    def warn(self, node: ast.Node, kind: str, message: str, hint: str = "") -> None:
        if not self.silent:
            self.context.warn(node, kind, message, hint)

    # ---- places

    def declared(self, nodes: tuple[ast.Declaration, ...], path: Path) -> Path:
        for node in nodes:
            if isinstance(node, ast.Variable):
                path = self.variable(node, path)
        return path

    def fresh(self, declaration: ast.Declaration, path: Path) -> Path:
        """Returns the state after a declaration without a value: its scalars are unset, and its
        headers are invalid."""
        type_ = self.program.type_of_declaration.get(declaration)
        unset, invalid = set(path.unset), set(path.invalid)
        for place, leaf in leaves(Place(declaration), type_):
            (invalid if isinstance(leaf, types.Header) else unset).add(place)
        return Path(frozenset(unset), frozenset(invalid), path.doubtful, path.ended)

    def place(self, node: ast.Expression) -> Place | None:
        """Returns the place in a variable that a node names. Returns None for other nodes, and
        inside stacks and unions."""
        if isinstance(node, ast.NameExpression):
            declaration = self.program.decl_of.get(node)
            followed = isinstance(declaration, (ast.Variable, ast.Parameter))
            return Place(declaration) if followed and declaration is not None else None
        if not isinstance(node, ast.Member):
            return None
        if not isinstance(self.program.type_of.get(node.base), (types.Struct, types.Header)):
            return None
        base = self.place(node.base)
        return None if base is None else Place(base.declaration, (*base.fields, node.member))

    def _missing(self, place: Place, path: Path) -> Place | None:
        """Returns a place that may be unset when `place` is read. It is a part of `place`, or
        contains `place`. Returns None if there is none.

        An unset field of a header only counts if the field itself is read.
        """
        found = (
            p
            for p in path.unset
            if place.inside(p) or (p.inside(place) and p not in self.header_fields)
        )
        return min(found, key=str, default=None)

    def invalid_access(self, node: ast.Expression, place: Place, path: Path) -> bool:
        """Warns if the place is a field of a header that is or may be invalid."""
        surely, maybe = _header_of(place, path.invalid), _header_of(place, path.doubtful)
        header = surely or maybe
        if header is None:
            return False
        problem = "is not valid here" if surely else "is not valid on all ways to here"
        hint = f"extract it, assign to it or call {header}.setValid() before"
        if maybe:
            hint = f"ask for {header}.isValid() before"
        message = f"'{header}' {problem}, so its fields may have no value"
        self.warn(node, "invalid-header", message, hint)
        return True

    def read(self, node: ast.Expression, place: Place, path: Path) -> None:
        if self.invalid_access(node, place, path):
            return
        missing = self._missing(place, path)
        if missing is not None:
            shown = missing if missing.inside(place) else place
            self.warn(
                node,
                "uninitialized-use",
                f"'{shown}' may not have been given a value yet",
                "assign to it on every path to here",
            )

    # ---- statements

    def statements(self, nodes: tuple[ast.Statement | ast.Declaration, ...], path: Path) -> Path:
        for node in nodes:
            if path.ended:
                self.warn(
                    node,
                    "unreachable",
                    "this statement is never reached",
                    "remove it, or the statement before it that always leaves",
                )
                return path
            path = self.statement(node, path)
        return path

    def statement(self, node: ast.Statement | ast.Declaration, path: Path) -> Path:
        handler = _STATEMENTS.get(type(node))
        return handler(self, node, path) if handler else path

    def variable(self, node: ast.Variable, path: Path) -> Path:
        if node.value is not None:
            return self.expression(node.value, path)
        return self.fresh(node, path)

    def constant(self, node: ast.Constant, path: Path) -> Path:
        return path

    def assignment(self, node: ast.Assignment, path: Path) -> Path:
        path = self.expression(node.right, path)
        if node.operator:
            path = self.expression(node.left, path)
        return self.target(node.left, path)

    def target(self, node: ast.Expression, path: Path) -> Path:
        """Records that a node is assigned to, and that the indices in it are read."""
        while isinstance(node, (ast.Slice, ast.PlusSlice)):
            node = node.base
        place = self.place(node)
        if place is not None:
            self.invalid_access(node, place, path)
            return path.given(place)
        if isinstance(node, ast.Index):
            path = self.expression(node.index, path)
        return self.target(node.base, path) if isinstance(node, (ast.Index, ast.Member)) else path

    def call_statement(self, node: ast.CallStatement, path: Path) -> Path:
        return self.expression(node.call, path)

    def block(self, node: ast.Block, path: Path) -> Path:
        return self.statements(node.statements, path)

    def branch(self, node: ast.If, path: Path) -> Path:
        path = self.expression(node.condition, path)
        then = self.statement(node.then, path)
        otherwise = self.statement(node.otherwise, path) if node.otherwise else path
        condition = self.program.const_value.get(node.condition)
        if condition is not None:
            return then if condition else otherwise
        return merge([then, otherwise])

    def switch(self, node: ast.Switch, path: Path) -> Path:
        path = self.expression(node.subject, path)
        ends = [self.block(c.body, path) for c in node.cases if c.body is not None]
        has_default = any(isinstance(c.label, ast.DefaultKeyset) for c in node.cases)
        return merge(ends if has_default and ends else [*ends, path])

    def for_loop(self, node: ast.For, path: Path) -> Path:
        path = self.expression(node.condition, self.statements(node.initial, path))
        inside = self.statement(node.body, path)
        self.statements(node.updates, path if inside.ended else inside)
        return Path(path.unset)

    def for_in(self, node: ast.ForIn, path: Path) -> Path:
        path = self.expression(node.collection, path)
        self.statement(node.body, path)
        return Path(path.unset)

    def result(self, node: ast.Return, path: Path) -> Path:
        if node.value is not None:
            path = self.expression(node.value, path)
        self.returns.append(path)
        return path.end()

    def jump(self, node: ast.Statement, path: Path) -> Path:
        return path.end()

    # ---- expressions

    def expression(self, node: ast.Expression, path: Path) -> Path:
        place = self.place(node)
        if place is not None:
            self.read(node, place, path)
            return path
        if isinstance(node, ast.Call):
            return self._call(node, path)
        for child in ast.children(node):
            if isinstance(child, ast.Expression):
                path = self.expression(child, path)
            elif isinstance(child, ast.StructMember):
                path = self.expression(child.value, path)
        return path

    def _call(self, node: ast.Call, path: Path) -> Path:
        info = self.program.calls.get(node)
        if info is None:
            return path
        if info.kind is CallKind.HEADER_METHOD and info.receiver is not None:
            return self._header_method(info, info.receiver, path)
        if info.kind is CallKind.SIZE_METHOD:
            return path
        if isinstance(node.callee, ast.Member):
            path = self.expression(node.callee.base, path)
        path = self._arguments(info, path)
        if isinstance(info.target, ast.TableDeclaration):
            for key in info.target.keys:
                path = self.expression(key.expression, path)
        if info.kind in (CallKind.ACTION, CallKind.TABLE_APPLY):
            path = path.without(self.touched)
        return path

    def _arguments(self, info: CallInfo, path: Path) -> Path:
        outputs: list[ast.Expression] = []
        for bound in info.arguments:
            if bound.value is None:
                continue
            if bound.parameter.direction != "out":
                path = self.expression(bound.value, path)
            if bound.parameter.direction in ("out", "inout"):
                self._overlap(bound.value, outputs)
                outputs.append(bound.value)
        for output in outputs:
            path = self.target(output, path)
        return path

    def _overlap(self, value: ast.Expression, outputs: list[ast.Expression]) -> None:
        place = self.place(value)
        others = [self.place(output) for output in outputs]
        for other in others:
            if place and other and (place.inside(other) or other.inside(place)):
                self.warn(
                    value,
                    "ordering",
                    f"'{place}' and '{other}' are both changed by this call; the last one counts",
                    "give the call variables of its own, and assign from them afterwards",
                )
                return

    def _header_method(self, info: CallInfo, header: ast.Expression, path: Path) -> Path:
        place = self.place(header)
        if place is None:
            return path
        if info.method == "setInvalid":
            return path.known_invalid(place)
        if info.method == "setValid" and place in path.invalid:
            type_ = self.program.type_of.get(header)
            assert isinstance(type_, types.Header)
            fields = {Place(place.declaration, (*place.fields, f.name)) for f in type_.fields}
            self.header_fields |= fields
            return Path(path.unset | fields, path.invalid - {place}, path.doubtful, path.ended)
        return path.maybe_valid(place)

    # ---- parsers

    def parser(self, node: ast.ParserDeclaration) -> None:
        """Checks each state of a parser, with what is known on all paths that lead to the state."""
        states = {s.name: s for s in node.states}
        entries = self._entries(node, states)
        self.silent = False
        for name, entry in entries.items():
            if name in states:
                self.state(states[name], entry)
        if "accept" in entries:
            self.check_outputs(node, node.parameters, entries["accept"])

    def _entries(
        self, node: ast.ParserDeclaration, states: dict[str, ast.ParserState]
    ) -> dict[str, Path]:
        self.silent = True
        entries = {"start": self.declared(node.locals, self.outputs(node.parameters))}
        pending = ["start"]
        while pending:
            state = states.get(pending.pop())
            if state is None:
                continue
            end = self.state(state, entries[state.name])
            for name in () if state.transition is None else targets(state.transition):
                known = entries.get(name)
                entries[name] = end if known is None else merge([known, end])
                if entries[name] != known and name not in FINAL_STATES:
                    pending.append(name)
        return entries

    def state(self, node: ast.ParserState, path: Path) -> Path:
        path = self.statements(node.statements, path)
        if node.transition is not None:
            for subject in node.transition.subject:
                path = self.expression(subject, path)
        return path


def _header_of(place: Place, headers: Places) -> Place | None:
    """Returns the header among `headers` to which a place belongs as a field, or None."""
    return next((h for h in headers if place != h and place.inside(h)), None)


_STATEMENTS: dict[type, Callable[[Any, Any, Path], Path]] = {
    ast.Variable: _Flow.variable,
    ast.Constant: _Flow.constant,
    ast.Assignment: _Flow.assignment,
    ast.CallStatement: _Flow.call_statement,
    ast.Block: _Flow.block,
    ast.If: _Flow.branch,
    ast.Switch: _Flow.switch,
    ast.For: _Flow.for_loop,
    ast.ForIn: _Flow.for_in,
    ast.Return: _Flow.result,
    ast.Exit: _Flow.jump,
    ast.Break: _Flow.jump,
    ast.Continue: _Flow.jump,
}


def check_flow(context: Context) -> None:
    """Checks the control flow of all bodies of a program that has no type errors."""
    for declaration in context.program.tree.declarations:
        _check_declaration(context, declaration)


def _check_declaration(context: Context, node: ast.Declaration) -> None:
    if isinstance(node, (ast.ControlDeclaration, ast.ParserDeclaration)):
        for local in node.locals:
            _check_declaration(context, local)
    if isinstance(node, ast.FunctionDeclaration):
        _check_function(context, node)
    elif isinstance(node, ast.ActionDeclaration):
        _Flow(context).body(node, node.parameters, node.body)
    elif isinstance(node, ast.ControlDeclaration):
        actions = [a for a in node.locals if isinstance(a, ast.ActionDeclaration)]
        touched: set[ast.Node] = {
            context.program.decl_of[n]
            for action in actions
            for n in ast.walk(action.body)
            if isinstance(n, ast.NameExpression) and n in context.program.decl_of
        }
        _Flow(context, touched).body(node, node.parameters, node.body, node.locals)
    elif isinstance(node, ast.ParserDeclaration):
        _Flow(context).parser(node)
    elif isinstance(node, ast.Instantiation):
        for method in node.initializer or ():
            _check_declaration(context, method)


def _check_function(context: Context, node: ast.FunctionDeclaration) -> None:
    if node.body is None:
        return
    end = _Flow(context).body(node, node.parameters, node.body)
    type_ = context.program.type_of_declaration.get(node)
    if end.ended or not isinstance(type_, types.Function) or isinstance(type_.result, types.Void):
        return
    context.error(node, f"function '{node.name}' does not return a value on all paths")
