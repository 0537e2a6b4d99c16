"""Checks parsers and controls: their states, local declarations and apply blocks."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.context import Context, Frame, did_you_mean
from p4native.compiler.check.functions import FunctionChecker
from p4native.compiler.check.instances import InstanceChecker
from p4native.compiler.check.parameters import Parameters
from p4native.compiler.check.statements import StatementChecker
from p4native.compiler.check.tables import TableChecker
from p4native.compiler.check.typerefs import TypeResolver

_SELECTABLE = (
    types.Bits,
    types.Boolean,
    types.Enum,
    types.SerializableEnum,
    types.Error,
    types.NewType,
    types.Tuple,
)
FINAL_STATES = ("accept", "reject")


class BlockChecker:
    """The part that checks parsers and controls with everything that is declared in them."""

    def __init__(
        self,
        context: Context,
        resolver: TypeResolver,
        parameters: Parameters,
        statements: StatementChecker,
        tables: TableChecker,
        functions: FunctionChecker,
        instances: InstanceChecker,
    ) -> None:
        self.context = context
        self.resolver = resolver
        self.parameters = parameters
        self.statements = statements
        self.tables = tables
        self.functions = functions
        self.instances = instances

    # ---- controls

    def check_control(self, node: ast.ControlDeclaration) -> None:
        outer, self.context.prefix = (
            self.context.prefix,
            self.context.program.full_name.get(node, node.name),
        )
        self.context.locals = node.locals
        with self.context.nested_scope(), self.context.code(Frame("control")):
            type_ = self._block_type(node)
            with self.context.nested_scope():
                for declaration in node.locals:
                    self.check_local(declaration)
                with self.context.code(Frame("apply")), self.context.nested_scope():
                    self.statements.check_statements(node.body.statements)
        self.context.prefix, self.context.locals = outer, ()
        self.context.record(node, type_)
        self.context.declare(node)

    def _block_type(
        self, node: ast.ControlDeclaration | ast.ParserDeclaration
    ) -> types.Control | types.Parser:
        for parameter in node.type_parameters:
            self.context.declare(parameter)
        is_parser = isinstance(node, ast.ParserDeclaration)
        owner = "parser" if is_parser else "control"
        parameters = self.parameters.parameter_types(node.parameters, owner)
        constructor = self.parameters.parameter_types(node.constructor_parameters, "constructor")
        for built in constructor:
            if built.optional and built.declaration is not None:
                self.context.error(
                    built.declaration, "a constructor's parameter cannot be @optional"
                )
        self.context.constructor_parameters.update(node.constructor_parameters)
        make = types.Parser if is_parser else types.Control
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        return make(node, arguments, parameters, constructor)

    def check_local(self, node: ast.Declaration) -> None:
        """Checks a declaration inside a parser or control."""
        if isinstance(node, ast.ActionDeclaration):
            self.functions.check_action(node)
        elif isinstance(node, ast.TableDeclaration):
            self.tables.check_table(node)
        elif isinstance(node, ast.Instantiation):
            self.instances.check_instantiation(node)
        elif isinstance(node, ast.ValueSet):
            self._value_set(node)
        else:
            self.statements.check_statement(node)

    # ---- parsers

    def check_parser(self, node: ast.ParserDeclaration) -> None:
        outer, self.context.prefix = (
            self.context.prefix,
            self.context.program.full_name.get(node, node.name),
        )
        self.context.locals = node.locals
        with self.context.nested_scope(), self.context.code(Frame("parser")):
            type_ = self._block_type(node)
            with self.context.nested_scope():
                for declaration in node.locals:
                    self.check_local(declaration)
                self._states(node)
        self.context.prefix, self.context.locals = outer, ()
        self.context.record(node, type_)
        self.context.declare(node)

    def _value_set(self, node: ast.ValueSet) -> None:
        element = self.resolver.resolve(node.type_ref)
        problem = not isinstance(element, (*_SELECTABLE, types.Struct, types.Unknown))
        if problem:
            element = self.context.error(node.type_ref, f"a value set cannot hold {element}")
        size = self.context.check(node.size)
        value = self.context.program.const_value.get(node.size)
        if not isinstance(size, (types.Bits, types.Integer, types.Unknown)):
            self.context.error(node.size, f"the size of a value set must be a number, not {size}")
        elif isinstance(value, int) and value < 0:
            self.context.error(node.size, "the size of a value set cannot be negative")
        elif not self.context.known(node.size):
            self.context.error(node.size, "the size of a value set must be known at compile time")
        self.context.record(node, types.Set(element))
        self.context.declare(node)

    def _states(self, node: ast.ParserDeclaration) -> None:
        states: dict[str, ast.ParserState] = {}
        for state in node.states:
            if state.name in FINAL_STATES:
                self.context.error(state, f"state '{state.name}' is built in")
            elif state.name in states:
                first = states[state.name].position
                self.context.error(state, f"state '{state.name}' is already declared at {first}")
            states.setdefault(state.name, state)
            self.context.program.full_name[state] = f"{self.context.prefix}.{state.name}"
        if "start" not in states:
            hint = "a parser begins in the state that is called start"
            self.context.error(node, f"parser '{node.name}' has no state 'start'", hint)
        for state in node.states:
            with self.context.code(Frame("state")), self.context.nested_scope():
                self.statements.check_statements(state.statements)
                self._transition(state, states)
        self._reachable(node, states)

    def _transition(self, state: ast.ParserState, states: dict[str, ast.ParserState]) -> None:
        transition = state.transition
        if transition is None:
            self.context.warn(
                state,
                "parser-transition",
                f"state '{state.name}' has no transition and ends in reject",
                "write `transition reject;` if that is meant",
            )
            return
        if transition.target is not None:
            self._target(transition.target, states)
            return
        subjects = [self._subject(s) for s in transition.subject]
        following = {case.target.name for case in transition.cases}
        if len(transition.cases) > 1 and len(following) == 1 and transition.subject:
            message = f"all cases of this select lead to '{min(following)}'"
            hint = f"write `transition {min(following)};`"
            self.context.warn(transition.subject[0], "parser-transition", message, hint)
        for case in transition.cases:
            self._select_keyset(case.keyset, subjects)
            self._target(case.target, states)
        self._unreachable_cases(transition)

    def _target(self, reference: ast.StateRef, states: dict[str, ast.ParserState]) -> None:
        state = states.get(reference.name)
        if state is not None:
            self.context.program.decl_of[reference] = state
        elif reference.name not in FINAL_STATES:
            hint = did_you_mean(reference.name, {*states, *FINAL_STATES})
            self.context.error(reference, f"there is no state '{reference.name}'", hint)

    def _subject(self, subject: ast.Expression) -> types.Type:
        type_ = self.context.check(subject)
        if isinstance(type_, types.Unknown):
            return type_
        if isinstance(type_, types.Integer):
            return self.context.error(subject, "select needs a value with a width")
        if not isinstance(type_, _SELECTABLE):
            return self.context.error(subject, f"select cannot decide on {type_}")
        return type_

    def _select_keyset(self, keyset: ast.Expression, subjects: list[types.Type]) -> None:
        if isinstance(keyset, ast.ListExpression) and keyset.parenthesized:
            if len(keyset.elements) == len(subjects):
                for element, subject in zip(keyset.elements, subjects, strict=True):
                    self.tables.check_keyset(element, subject)
                elements = tuple(self.context.program.type_of[e] for e in keyset.elements)
                self.context.program.type_of[keyset] = types.Tuple(elements)
                return
            self._wrong_count(keyset, len(keyset.elements), len(subjects))
        elif len(subjects) == 1 and not self._holds_structs(keyset):
            self.tables.check_keyset(keyset, subjects[0])
        elif isinstance(keyset, ast.DefaultKeyset):
            self.context.check(keyset)
        else:
            self._whole_keyset(keyset, subjects)

    def _holds_structs(self, keyset: ast.Expression) -> bool:
        """Whether the keyset is the name of a value set of structs. The fields of these structs are
        the keys."""
        if not isinstance(keyset, ast.NameExpression):
            return False
        type_ = self.context.check(keyset)
        return isinstance(type_, types.Set) and isinstance(type_.element, types.Struct)

    def _whole_keyset(self, keyset: ast.Expression, subjects: list[types.Type]) -> None:
        """Checks a single keyset that stands for several subjects. It must be a value set of tuples
        or structs."""
        type_ = self.context.check(keyset)
        element = type_.element if isinstance(type_, types.Set) else type_
        parts: tuple[types.Type, ...] | None = None
        if isinstance(element, types.Struct):
            parts = tuple(f.type for f in element.fields)
        elif isinstance(element, types.Tuple):
            parts = element.elements
        wanted = types.Tuple(tuple(subjects))
        if isinstance(element, types.Unknown) or _leaves(element) == _leaves(wanted):
            return
        self._wrong_count(keyset, len(parts) if parts else 1, len(subjects))

    def _wrong_count(self, keyset: ast.Expression, given: int, wanted: int) -> None:
        keys = "key" if given == 1 else "keys"
        self.context.error(keyset, f"{given} {keys} given, but select decides on {wanted}")

    def _unreachable_cases(self, transition: ast.Transition) -> None:
        for index, case in enumerate(transition.cases[:-1]):
            if isinstance(case.keyset, ast.DefaultKeyset):
                after = transition.cases[index + 1]
                self.context.warn(
                    after,
                    "parser-transition",
                    "this case is never reached, because the case before it matches everything",
                    "move it up",
                )
                return

    def _reachable(self, node: ast.ParserDeclaration, states: dict[str, ast.ParserState]) -> None:
        reached: set[str] = set()
        pending = ["start"]
        while pending:
            name = pending.pop()
            state = states.get(name)
            if state is None or name in reached:
                continue
            reached.add(name)
            if state.transition is not None:
                pending.extend(targets(state.transition))
        self.context.program.parser_reachable[node] = reached
        if "start" not in states or _dangling_targets(states):
            return  # reported already; what is reached is not known then
        ends = any(_may_end(states[name]) for name in reached)
        if not ends:
            self.context.error(node, f"parser '{node.name}' reaches neither accept nor reject")
        accepts = any("accept" in _target_names(states[name]) for name in reached)
        if ends and not accepts:
            self.context.warn(
                node,
                "unreachable",
                f"parser '{node.name}' never accepts",
                "all its paths end in reject",
            )
        for state in node.states:
            if state.name not in reached:
                self.context.warn(
                    state,
                    "unused",
                    f"state '{state.name}' is never reached",
                    "no transition names it",
                )


def _dangling_targets(states: dict[str, ast.ParserState]) -> bool:
    known = {*states, *FINAL_STATES}
    transitions = [s.transition for s in states.values() if s.transition is not None]
    return any(name not in known for t in transitions for name in targets(t))


def targets(transition: ast.Transition) -> list[str]:
    """Returns the names of the states to which a transition may go."""
    if transition.target is not None:
        return [transition.target.name]
    return [case.target.name for case in transition.cases]


def _target_names(state: ast.ParserState) -> list[str]:
    return [] if state.transition is None else targets(state.transition)


def _may_end(state: ast.ParserState) -> bool:
    """Whether a state may go to accept or reject. A state without a transition goes to reject, and
    so does a state of which no case matches."""
    if state.transition is None:
        return True
    following = targets(state.transition)
    return not following or any(name in FINAL_STATES for name in following)


def _leaves(type_: types.Type) -> list[types.Type]:
    """Returns the scalar types in a struct or tuple, depth first."""
    if isinstance(type_, types.Struct):
        return [leaf for f in type_.fields for leaf in _leaves(f.type)]
    if isinstance(type_, types.Tuple):
        return [leaf for e in type_.elements for leaf in _leaves(e)]
    return [type_]
