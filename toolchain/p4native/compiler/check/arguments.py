"""Matches arguments to parameters, by position and by name. Chooses among overloads, infers type
arguments and checks directions."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.compiler import ast, types
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context
from p4native.compiler.check.hints import of_argument, of_call
from p4native.compiler.check.members import MemberChecker
from p4native.compiler.check.unify import Unifier, block_difference
from p4native.compiler.typed import BoundArgument

_NO_VALUES = (types.Table, types.Action, types.Overloads, types.TypeName, types.Void)
Pairing = list[tuple[types.ParameterType, ast.Argument | None]]


class ArgumentChecker:
    """The part that chooses among overloads, infers type arguments and binds arguments to
    parameters."""

    def __init__(self, context: Context, coercion: Coercion, members: MemberChecker) -> None:
        self.context = context
        self.coercion = coercion
        self.members = members
        # Arguments whose types overload resolution needed before their parameters were known.
        self.checked_arguments: set[ast.Expression] = set()

    def choose(
        self,
        where: ast.Node,
        name: str,
        candidates: Sequence[types.Function],
        arguments: tuple[ast.Argument, ...],
        receiver: str = "",
    ) -> tuple[types.Function, Pairing] | None:
        """Returns the function that takes these arguments, by their number and names (P4_16 6.8.3)
        and then by their types. Returns None after reporting an error. receiver: the text in front
        of the name, such as "tags."."""
        problems: list[str] = []
        fitting: list[tuple[types.Function, Pairing]] = []
        for candidate in candidates:
            paired = pair(candidate.parameters, arguments)
            if isinstance(paired, str):
                problems.append(paired)
            else:
                fitting.append((candidate, paired))
        if len(fitting) > 1:
            fitting = self._fitting_types(fitting) or fitting
        if len(fitting) > 1:
            self.context.error(where, f"call of '{name}' fits {len(fitting)} declarations")
            return None
        if not fitting:
            self.check_loose(arguments)
            if len(candidates) == 1:
                hint = of_call(receiver, name, candidates[0].parameters, arguments)
                self.context.error(where, f"'{name}': {problems[0]}", hint)
            else:
                forms = "; ".join(str(c) for c in candidates)
                self.context.error(where, f"no '{name}' takes these arguments", f"there is {forms}")
            return None
        return fitting[0]

    def _fitting_types(
        self, fitting: list[tuple[types.Function, Pairing]]
    ) -> list[tuple[types.Function, Pairing]]:
        """Returns those of the candidates whose parameter types the arguments fit."""
        found = []
        for argument in (a.value for _, pairs in fitting for _, a in pairs if a):
            if argument is not None and argument not in self.checked_arguments:
                self.context.check(argument)
                self.checked_arguments.add(argument)
        for function, pairs in fitting:
            unifier = Unifier(function.type_parameters)
            if all(
                argument is None
                or argument.value is None
                or unifier.match(parameter.type, self.context.program.type_of[argument.value])
                for parameter, argument in pairs
            ):
                found.append((function, pairs))
        return found

    def check_loose(self, arguments: tuple[ast.Argument, ...]) -> None:
        """Checks arguments that fit no parameters, so that errors inside them are reported, too."""
        for argument in arguments:
            if argument.value is not None:
                self.context.check(argument.value)

    # ---- inference

    def infer(
        self,
        where: ast.Node,
        name: str,
        variables: tuple[ast.TypeParameter, ...],
        given: tuple[types.Type, ...],
        pairs: Pairing,
        result: types.Type,
        expected: types.Type | None,
    ) -> dict[ast.TypeParameter, types.Type] | None:
        """Checks the arguments and returns the type arguments, or None after reporting an error."""
        unifier = Unifier(variables)
        for variable, type_ in zip(variables, given, strict=False):
            if not isinstance(type_, types.DontCare):
                unifier.bindings[variable] = type_
        fine = self._match_arguments(unifier, pairs)
        unbound = [v for v in variables if v not in unifier.bindings]
        if unbound and expected is not None:
            unifier.match(result, expected)
        return self._solved(where, name, unifier, variables, pairs) if fine else None

    def _match_arguments(self, unifier: Unifier, pairs: Pairing) -> bool:
        fine = True
        for parameter, argument in pairs:
            if argument is None or argument.value is None:
                continue
            hint = types.substitute(parameter.type, unifier.bindings)
            if argument.value in self.checked_arguments:
                actual = self.context.program.type_of[argument.value]
            else:
                actual = self.context.check(argument.value, hint)
            if isinstance(actual, types.Unknown):
                fine = fine and not unifier.variables
            elif _is_no_value(actual, parameter.type):
                self.context.error(argument.value, f"{actual} cannot be an argument")
                fine = False
            elif not unifier.match(parameter.type, actual):
                wanted = types.substitute(parameter.type, unifier.bindings)
                place = argument.value
                note = ""
                if isinstance(wanted, types.Block) and isinstance(actual, types.Block):
                    note = block_difference(wanted, actual)
                problem = f"parameter '{parameter.name}' has type {wanted}, but this is {actual}"
                self.context.error(
                    place, problem, note or of_argument(parameter, wanted, actual, pairs)
                )
                fine = False
        return fine

    def _solved(
        self,
        where: ast.Node,
        name: str,
        unifier: Unifier,
        variables: tuple[ast.TypeParameter, ...],
        pairs: Pairing,
    ) -> dict[ast.TypeParameter, types.Type] | None:
        left_out = {
            p.type.declaration
            for p, argument in pairs
            if argument is None and isinstance(p.type, types.TypeVariable)
        }
        for variable in variables:
            bound = unifier.bindings.get(variable)
            if bound is None and (isinstance(where, ast.Instantiation) or variable in left_out):
                unifier.bindings[variable] = types.DONT_CARE
            elif problem := _undetermined(bound):
                self.context.error(
                    where,
                    f"type argument {variable.name} of '{name}' cannot be inferred{problem}",
                    f"give the number a width, such as 16w0, or write {name}<...>(...)"
                    if isinstance(bound, types.Integer)
                    else f"write it: {name}<...>(...)",
                )
                return None
        return {v: unifier.bindings[v] for v in variables}

    # ---- the arguments themselves

    def bind_arguments(
        self, pairs: Pairing, bindings: types.Bindings, constant: bool
    ) -> tuple[BoundArgument, ...]:
        """Converts checked arguments to their parameters' types and checks their directions.

        constant: whether parameters without direction need values known at compile time.
        """
        bound: list[BoundArgument] = []
        for parameter, argument in pairs:
            (known,) = types.substitute_parameters((parameter,), bindings)
            value = parameter.default if argument is None else argument.value
            if argument is not None:
                self._bind_one(known, argument, constant)
            bound.append(BoundArgument(known, value))
        return tuple(bound)

    def _bind_one(
        self, parameter: types.ParameterType, argument: ast.Argument, constant: bool
    ) -> None:
        what = f"parameter '{parameter.name}'"
        value = argument.value
        if value is None:
            if parameter.direction != "out":
                self.context.error(
                    argument, f"'_' can be given to out parameters only, not to {what}"
                )
            return
        if parameter.direction and isinstance(parameter.type, (types.String, types.Integer)):
            self.context.error(
                value, f"{what} is '{parameter.direction}' and cannot take {parameter.type}"
            )
            return
        if parameter.direction in ("out", "inout"):
            self._bind_output(parameter, value)
            return
        fine = self.coercion.coerce(value, parameter.type, what)
        if fine and constant and not parameter.direction and not self.context.known(value):
            self.context.error(value, f"{what} needs a value known at compile time")

    def _bind_output(self, parameter: types.ParameterType, value: ast.Expression) -> None:
        what = f"{parameter.direction} parameter '{parameter.name}'"
        actual = self.context.program.type_of[value]
        if isinstance(actual, types.Unknown):
            return
        problem = self.members.lvalue_problem(value)
        if problem:
            self.context.error(value, f"{what} needs a variable, but {problem}")
        elif actual != parameter.type and not isinstance(parameter.type, types.Unknown):
            self.context.error(value, f"{what} has type {parameter.type}, but this is {actual}")


def pair(
    parameters: tuple[types.ParameterType, ...], arguments: tuple[ast.Argument, ...]
) -> Pairing | str:
    """Returns each parameter with its argument (None where it is left out), or the reason why the
    arguments do not fit the parameters."""
    named = [a for a in arguments if a.name is not None]
    if named and len(named) != len(arguments):
        return "either all arguments are named or none"
    given: dict[str, ast.Argument] = {}
    if named:
        for argument in named:
            assert argument.name is not None
            if argument.name in given:
                return f"argument '{argument.name}' is given twice"
            given[argument.name] = argument
        unknown = given.keys() - {p.name for p in parameters}
        if unknown:
            return f"there is no parameter '{min(unknown)}'"
    elif len(arguments) > len(parameters):
        return f"{_count(len(parameters))} expected, {len(arguments)} given"
    else:
        given = {p.name: a for p, a in zip(parameters, arguments, strict=False)}
    for parameter in parameters:
        if parameter.name not in given and not parameter.optional and parameter.default is None:
            if named:
                return f"no argument for parameter '{parameter.name}'"
            return f"{_count(len(parameters))} expected, {len(arguments)} given"
    return [(p, given.get(p.name)) for p in parameters]


def _count(number: int) -> str:
    return f"{number} argument{'s' * (number != 1)}"


def _is_no_value(actual: types.Type, wanted: types.Type) -> bool:
    block = isinstance(actual, types.Block) and not isinstance(wanted, types.Block)
    return block or isinstance(actual, _NO_VALUES)


def _undetermined(bound: types.Type | None) -> str:
    """Returns the reason why the type found for a type parameter is not a definite type, or an
    empty string if it is one."""
    if bound is None:
        return " from the arguments"
    if isinstance(bound, types.Integer):
        return ": the argument is a number without width"
    if isinstance(bound, (types.StructLiteral, types.InvalidLiteral, types.DefaultLiteral)):
        return f" from {bound}"
    return ""
