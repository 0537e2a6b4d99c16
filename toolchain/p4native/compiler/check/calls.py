"""Checks calls: what is called on which object, with which arguments, and whether the call is
allowed in its place."""

from __future__ import annotations

from p4native.compiler import ast, types
from p4native.compiler.check.arguments import ArgumentChecker, Pairing, pair
from p4native.compiler.check.context import Context, did_you_mean
from p4native.compiler.check.hints import of_call
from p4native.compiler.check.members import (
    HEADER_METHODS,
    SIZE_METHODS,
    STACK_METHODS,
    MemberChecker,
    holds_headers,
)
from p4native.compiler.check.typerefs import TypeResolver
from p4native.compiler.typed import BoundArgument, CallInfo, CallKind, ConstructionInfo


class CallChecker:
    """The part that checks calls of functions, actions and methods, and applications of tables,
    parsers and controls."""

    def __init__(
        self,
        context: Context,
        resolver: TypeResolver,
        members: MemberChecker,
        arguments: ArgumentChecker,
    ) -> None:
        self.context = context
        self.resolver = resolver
        self.members = members
        self.arguments = arguments

    def check_call(self, node: ast.Call, expected: types.Type | None) -> types.Type:
        callee = node.callee
        if isinstance(callee, ast.Member):
            return self._method_call(node, callee, expected)
        if isinstance(callee, ast.NameExpression):
            return self._plain_call(node, callee, expected)
        self.context.check(callee)
        self.arguments.check_loose(node.arguments)
        return self.context.error(node, "this cannot be called")

    def _plain_call(
        self, node: ast.Call, callee: ast.NameExpression, expected: types.Type | None
    ) -> types.Type:
        target = self.context.check(callee)
        if isinstance(target, types.Action):
            return self._action_call(node, callee, target)
        if isinstance(target, types.Overloads):
            return self._function_call(node, callee, target.functions, expected)
        self.arguments.check_loose(node.arguments)
        if isinstance(target, types.Unknown):
            return target
        hint = f"call {callee.name}.apply(...)" if isinstance(target, _APPLICABLE) else ""
        return self.context.error(node, f"'{callee.name}' is not a function", hint)

    def _action_call(
        self, node: ast.Call, callee: ast.NameExpression, target: types.Action
    ) -> types.Type:
        if node.type_arguments:
            self.context.error(node, f"action '{callee.name}' takes no type arguments")
        if self.context.frame.kind not in ("action", "apply", "table"):
            self.context.error(node, f"action '{callee.name}' cannot be called from {self.here()}")
        paired = pair(target.parameters, node.arguments)
        if isinstance(paired, str):
            self.arguments.check_loose(node.arguments)
            hint = of_call("", callee.name, target.parameters, node.arguments)
            return self.context.error(node, f"'{callee.name}': {paired}", hint)
        self.match_plain(paired)
        bound = self.arguments.bind_arguments(paired, {}, constant=False)
        self._record(node, CallKind.ACTION, callee.name, target.declaration, None, bound)
        return types.VOID

    def here(self) -> str:
        return _PLACES.get(self.context.frame.kind, f"a {self.context.frame.kind}")

    def match_plain(self, pairs: Pairing) -> None:
        """Checks arguments for parameters whose types are fully known."""
        for parameter, argument in pairs:
            if argument is not None and argument.value is not None:
                self.context.check(argument.value, parameter.type)

    def _record(
        self,
        node: ast.Call,
        kind: CallKind,
        method: str,
        target: ast.Declaration | None,
        receiver: ast.Expression | None,
        arguments: tuple[BoundArgument, ...] = (),
        result: types.Type = types.VOID,
        bindings: types.Bindings | None = None,
        type_arguments: tuple[types.Type, ...] = (),
    ) -> types.Type:
        self.context.program.calls[node] = CallInfo(
            kind, method, target, receiver, type_arguments, bindings or {}, arguments, result
        )
        return result

    # ---- functions

    def _function_call(
        self,
        node: ast.Call,
        callee: ast.NameExpression,
        functions: tuple[types.Function, ...],
        expected: types.Type | None,
    ) -> types.Type:
        chosen = self.arguments.choose(node, callee.name, functions, node.arguments)
        if chosen is None:
            return types.UNKNOWN
        declaration = chosen[0].declaration
        assert declaration is not None
        self.context.program.decl_of[callee] = declaration
        self.warn_deprecated(node, declaration)
        if (
            callee.name == "verify"
            and declaration.body is None
            and self.context.frame.kind != "state"
        ):
            self.context.error(node, "'verify' can be called in parser states only")
        kind = CallKind.FUNCTION if declaration.body else CallKind.EXTERN_FUNCTION
        if declaration.body is None and callee.name == "static_assert":
            kind = CallKind.STATIC_ASSERT
        result = self._finish(node, callee.name, kind, None, chosen, {}, expected)
        if kind is CallKind.STATIC_ASSERT:
            self._static_assert(node)
        return result

    def warn_deprecated(self, node: ast.Node, declaration: ast.Declaration) -> None:
        annotation = declaration.annotation("deprecated")
        if annotation is not None:
            reason = annotation.arguments[0] if annotation.arguments else None
            hint = reason.value if isinstance(reason, ast.StringLiteral) else ""
            self.context.warn(node, "deprecated", f"'{declaration.name}' is deprecated", hint)

    def _static_assert(self, node: ast.Call) -> None:
        info = self.context.program.calls.get(node)
        condition = info.arguments[0].value if info else None
        if condition is None:
            return
        holds = self.context.program.const_value.get(condition)
        if holds is False:
            text = self.context.program.const_value.get(node.arguments[-1].value or condition)
            reason = f": {text}" if isinstance(text, str) else ""
            self.context.error(node, f"static assertion failed{reason}")
        self.context.set_constant(node, True)

    def _finish(
        self,
        node: ast.Call,
        name: str,
        kind: CallKind,
        receiver: ast.Expression | None,
        chosen: tuple[types.Function, Pairing],
        outer: types.Bindings,
        expected: types.Type | None,
    ) -> types.Type:
        """Records the type arguments, the arguments and the result of the chosen function."""
        function, pairs = chosen
        variables = function.type_parameters
        given = tuple(self.resolver.resolve(a) for a in node.type_arguments)
        if given and len(given) != len(variables):
            self.arguments.check_loose(node.arguments)
            takes = f"{len(variables)} type arguments" if variables else "no type arguments"
            return self.context.error(node, f"'{name}' takes {takes}, not {len(given)}")
        for ref, argument in zip(node.type_arguments, given, strict=True):
            if isinstance(argument, types.Void):
                self.context.error(ref, "void cannot be a type argument of a call")
        bindings = self.arguments.infer(
            node, name, variables, given, pairs, function.result, expected
        )
        if bindings is None:
            return types.UNKNOWN if variables else function.result
        bound = self.arguments.bind_arguments(pairs, bindings, constant=False)
        result = types.substitute(function.result, bindings)
        arguments = tuple(bindings[v] for v in variables)
        merged = {**outer, **bindings}
        target = function.declaration
        return self._record(node, kind, name, target, receiver, bound, result, merged, arguments)

    # ---- methods

    def _method_call(
        self, node: ast.Call, callee: ast.Member, expected: types.Type | None
    ) -> types.Type:
        base = self.context.check(callee.base)
        if isinstance(base, types.Unknown):
            self.arguments.check_loose(node.arguments)
            return base
        name = callee.member
        if name in SIZE_METHODS and not isinstance(base, types.Extern):
            return self._size_call(node, callee, base)
        if isinstance(base, types.TypeName):
            return self._static_call(node, callee, base.named)
        if isinstance(base, types.Extern):
            return self._extern_call(node, callee, base, expected)
        if isinstance(base, types.Table) and name == "apply":
            return self._table_apply(node, callee, base)
        if isinstance(base, types.Block) and name == "apply":
            return self._block_apply(node, callee.base, base)
        if isinstance(base, (types.Header, types.HeaderUnion)) and name in HEADER_METHODS:
            return self._header_call(node, callee, base)
        if isinstance(base, types.Stack) and name in STACK_METHODS and holds_headers(base):
            return self._stack_call(node, callee)
        self.arguments.check_loose(node.arguments)
        hint = did_you_mean(name, {"apply", *HEADER_METHODS, *STACK_METHODS, *SIZE_METHODS})
        return self.context.error(callee.member_position, f"{base} has no method '{name}'", hint)

    def _no_arguments(self, node: ast.Call, name: str) -> None:
        if node.arguments or node.type_arguments:
            self.arguments.check_loose(node.arguments)
            self.context.error(node, f"'{name}' takes no arguments")

    def _size_call(self, node: ast.Call, callee: ast.Member, base: types.Type) -> types.Type:
        self._no_arguments(node, callee.member)
        named = base.named if isinstance(base, types.TypeName) else base
        bits = size_bits(named, largest=callee.member.startswith("max"))
        if bits is None:
            return self.context.error(callee, f"{named} has no size")
        self.context.set_constant(
            node, (bits + 7) // 8 if callee.member.endswith("Bytes") else bits
        )
        return self._record(
            node, CallKind.SIZE_METHOD, callee.member, None, callee.base, result=types.INTEGER
        )

    def _header_call(self, node: ast.Call, callee: ast.Member, base: types.Type) -> types.Type:
        name = callee.member
        self._no_arguments(node, name)
        if name != "isValid":
            if isinstance(base, types.HeaderUnion):
                return self.context.error(callee, f"a header union has no method '{name}'")
            problem = self.members.lvalue_problem(callee.base)
            if problem:
                self.context.error(callee.base, f"'{name}' changes the header, but {problem}")
        result = types.BOOLEAN if name == "isValid" else types.VOID
        return self._record(node, CallKind.HEADER_METHOD, name, None, callee.base, result=result)

    def _stack_call(self, node: ast.Call, callee: ast.Member) -> types.Type:
        name = callee.member
        problem = self.members.lvalue_problem(callee.base)
        if problem:
            self.context.error(callee.base, f"'{name}' changes the stack, but {problem}")
        parameter = types.ParameterType("count", types.INTEGER)
        paired = pair((parameter,), node.arguments)
        if isinstance(paired, str):
            self.arguments.check_loose(node.arguments)
            return self.context.error(node, f"'{name}': {paired}")
        value = node.arguments[0].value
        count = None if value is None else self.resolver.constant_integer(value, f"'{name}' count")
        if value is not None and count is not None and count < 0:
            self.context.error(value, f"'{name}' needs a number of 0 or more, not {count}")
        bound = (BoundArgument(parameter, value),)
        return self._record(node, CallKind.STACK_METHOD, name, None, callee.base, bound)

    def _table_apply(self, node: ast.Call, callee: ast.Member, base: types.Table) -> types.Type:
        self._no_arguments(node, "apply")
        if self.context.frame.kind not in ("apply", "table"):
            hint = "apply it in the apply block; the action can say by meta what is to be done"
            self.context.error(node, f"a table cannot be applied in {self.here()}", hint)
        result = types.ApplyResult(base.declaration)
        return self._record(
            node, CallKind.TABLE_APPLY, "apply", base.declaration, callee.base, result=result
        )

    def _extern_call(
        self,
        node: ast.Call,
        callee: ast.Member,
        base: types.Extern,
        expected: types.Type | None,
    ) -> types.Type:
        methods = [m for m in self.methods_of(base) if _name_of(m) == callee.member]
        if not methods:
            self.arguments.check_loose(node.arguments)
            hint = did_you_mean(callee.member, {_name_of(m) for m in self.methods_of(base)})
            problem = f"{base} has no method '{callee.member}'"
            return self.context.error(callee.member_position, problem, hint)
        receiver = f"{callee.base.name}." if isinstance(callee.base, ast.NameExpression) else ""
        chosen = self.arguments.choose(node, callee.member, methods, node.arguments, receiver)
        if chosen is None:
            return types.UNKNOWN
        declaration = chosen[0].declaration
        assert declaration is not None
        self.warn_deprecated(node, declaration)
        kind = CallKind.ABSTRACT_METHOD if declaration.abstract else CallKind.EXTERN_METHOD
        outer = dict(zip(base.declaration.type_parameters, base.arguments, strict=True))
        result = self._finish(node, callee.member, kind, callee.base, chosen, outer, expected)
        if base.name in ("packet_in", "packet_out"):
            self._packet_call(node, callee.member)
        return result

    def _packet_call(self, node: ast.Call, name: str) -> None:
        """Checks the rules for extract, lookahead and emit that core.p4's declarations cannot
        express."""
        info = self.context.program.calls.get(node)
        if info is None or not info.type_arguments:
            return
        type_ = info.type_arguments[0]
        place = node.arguments[0] if node.arguments else node
        problem = ""
        if name == "extract":
            problem = _extract_problem(type_, flexible=len(info.arguments) > 1)
        elif name == "lookahead" and _is_flexible(type_):
            problem = f"lookahead needs a type of fixed width, not {type_}"
        elif name == "emit" and not _emittable(type_):
            problem = f"emit takes headers, stacks, unions and structs of them, not {type_}"
        if problem:
            self.context.error(place, problem)

    def methods_of(self, extern: types.Extern) -> tuple[types.Function, ...]:
        """Returns the methods of an extern object except its constructors. In their types, the
        object's type arguments replace the type parameters."""
        bindings = dict(zip(extern.declaration.type_parameters, extern.arguments, strict=True))
        found = []
        for method in extern.declaration.methods:
            type_ = self.context.program.type_of_declaration.get(method)
            if method.return_type is not None and isinstance(type_, types.Function):
                found.append(types.substitute(type_, bindings))
        return tuple(found)

    # ---- parsers and controls

    def _static_call(self, node: ast.Call, callee: ast.Member, named: types.Type) -> types.Type:
        """Checks `Inner.apply(...)`, which makes an instance for this one call."""
        body = (ast.ControlDeclaration, ast.ParserDeclaration)
        if not isinstance(named, types.Block) or callee.member != "apply":
            self.arguments.check_loose(node.arguments)
            if isinstance(named, types.Unknown):
                return named
            return self.context.error(callee, f"type {named} has no method '{callee.member}'")
        if not isinstance(named.declaration, body):
            self.arguments.check_loose(node.arguments)
            return self.context.error(node, f"{named} has no body to apply")
        required = [p for p in named.constructor if p.default is None and not p.optional]
        if required:
            self.context.error(node, f"{named} needs constructor arguments: declare an instance")
        self.context.program.constructions[node] = ConstructionInfo(
            named, named.declaration, None, ()
        )
        return self._block_apply(node, None, named)

    def _block_apply(
        self, node: ast.Call, receiver: ast.Expression | None, base: types.Block
    ) -> types.Type:
        is_parser = isinstance(base, types.Parser)
        where, kind = ("state", "parser") if is_parser else ("apply", "control")
        if self.context.frame.kind != where:
            self.context.error(node, f"a {kind} cannot be applied in {self.here()}")
        paired = pair(base.parameters, node.arguments)
        if isinstance(paired, str):
            self.arguments.check_loose(node.arguments)
            return self.context.error(node, f"apply of {base}: {paired}")
        self.match_plain(paired)
        bound = self.arguments.bind_arguments(paired, {}, constant=False)
        call_kind = CallKind.PARSER_APPLY if is_parser else CallKind.CONTROL_APPLY
        return self._record(node, call_kind, "apply", base.declaration, receiver, bound)


def _extract_problem(type_: types.Type, flexible: bool) -> str:
    if isinstance(type_, (types.Unknown, types.TypeVariable)):
        return ""
    if not isinstance(type_, types.Header):
        return f"extract fills a header, not {type_}"
    if sum(isinstance(f.type, types.Varbit) for f in type_.fields) > 1:
        return f"{type_} has several varbit fields, which cannot be extracted"
    if flexible and not _is_flexible(type_):
        return f"{type_} has no varbit field whose size could be given"
    if not flexible and _is_flexible(type_):
        return f"{type_} has a varbit field: give its size in bits as second argument"
    return ""


def _is_flexible(type_: types.Type) -> bool:
    if isinstance(type_, (types.Struct, types.Header)):
        return any(_is_flexible(f.type) for f in type_.fields)
    return isinstance(type_, types.Varbit)


def _emittable(type_: types.Type) -> bool:
    if isinstance(type_, (types.Struct, types.Tuple)):
        parts = type_.elements if isinstance(type_, types.Tuple) else [f.type for f in type_.fields]
        return all(map(_emittable, parts))
    if isinstance(type_, types.Stack):
        return _emittable(type_.element)
    headers = (types.Header, types.HeaderUnion, types.TypeVariable, types.Unknown)
    return isinstance(type_, headers)


_PLACES = {"state": "a parser state", "apply": "a control", "action": "an action"}
_APPLICABLE = (types.Table, types.Block)


def _name_of(method: types.Function) -> str:
    return method.declaration.name if method.declaration else ""


def size_bits(type_: types.Type, largest: bool) -> int | None:
    """Returns the bits of a type for maxSizeInBits (largest True) or minSizeInBits (largest False),
    or None if the type has no size."""
    if isinstance(type_, types.Varbit):
        return type_.width if largest else 0
    if isinstance(type_, types.HeaderUnion):
        sizes = [size_bits(f.type, largest) for f in type_.fields]
        known = [s for s in sizes if s is not None]
        return (max if largest else min)(known, default=0) if len(known) == len(sizes) else None
    if isinstance(type_, types.Stack):
        element = size_bits(type_.element, largest)
        return None if element is None else element * type_.size
    parts: tuple[types.Type, ...] | None = None
    if isinstance(type_, (types.Struct, types.Header)):
        parts = tuple(f.type for f in type_.fields)
    elif isinstance(type_, types.Tuple):
        parts = type_.elements
    if parts is None:
        return types.width_bits(type_)
    sizes = [size_bits(p, largest) for p in parts]
    return None if None in sizes else sum(s for s in sizes if s is not None)
