"""Checks top-level declarations. Types, externs and packages are checked in this module, and the
others by other parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from p4native.compiler import ast, types
from p4native.compiler.check.blocks import BlockChecker
from p4native.compiler.check.coerce import Coercion
from p4native.compiler.check.context import Context
from p4native.compiler.check.functions import FunctionChecker
from p4native.compiler.check.instances import InstanceChecker
from p4native.compiler.check.parameters import Parameters
from p4native.compiler.check.statements import StatementChecker
from p4native.compiler.check.typerefs import MAX_LEAVES, TypeResolver, field_problem

_STRUCT_TYPES = {
    "struct": types.Struct,
    "header": types.Header,
    "header_union": types.HeaderUnion,
}
_RENAMABLE = (types.Bits, types.Boolean, types.NewType, types.Varbit, types.SerializableEnum)


class DeclarationChecker:
    """The part that checks every top-level declaration, with the help of the other parts."""

    def __init__(
        self,
        context: Context,
        resolver: TypeResolver,
        coercion: Coercion,
        parameters: Parameters,
        statements: StatementChecker,
        functions: FunctionChecker,
        instances: InstanceChecker,
        blocks: BlockChecker,
    ) -> None:
        self.context = context
        self.resolver = resolver
        self.coercion = coercion
        self.parameters = parameters
        self.functions = functions
        self._checks: dict[type, Callable[[Any], None]] = {
            ast.StructDeclaration: self.check_struct_declaration,
            ast.EnumDeclaration: self.check_enum,
            ast.ErrorDeclaration: self.check_errors,
            ast.MatchKindDeclaration: self.check_match_kinds,
            ast.TypedefDeclaration: self.check_typedef,
            ast.ExternDeclaration: self.check_extern,
            ast.PackageDeclaration: self.check_package,
            ast.ParserTypeDeclaration: self.check_block_type,
            ast.ControlTypeDeclaration: self.check_block_type,
            ast.ParserDeclaration: blocks.check_parser,
            ast.ControlDeclaration: blocks.check_control,
            ast.ActionDeclaration: functions.check_action,
            ast.Constant: statements.check_constant,
            ast.Instantiation: instances.check_instantiation,
            ast.FunctionDeclaration: functions.check_declared,
        }

    def check_declaration(self, node: ast.Declaration) -> None:
        self._checks[type(node)](node)

    # ---- types

    def check_struct_declaration(self, node: ast.StructDeclaration) -> None:
        make = _STRUCT_TYPES[node.kind]
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        empty = make(node, arguments)
        self._unique(node.fields, "field")
        with self.context.nested_scope():
            for parameter in node.type_parameters:
                self.context.declare(parameter)
            fields = tuple(self._struct_field(empty, f) for f in node.fields)
        type_ = make(node, arguments, fields)
        if self.resolver.too_large(type_):
            self.context.error(node, f"'{node.name}' has more than {MAX_LEAVES} fields")
            type_ = empty
        self.context.record(node, type_)
        self.context.declare(node)

    def _struct_field(self, owner: types.StructLike, node: ast.StructField) -> types.Field:
        type_ = self.resolver.resolve(node.type_ref)
        problem = field_problem(owner, type_)
        if problem:
            type_ = self.context.error(node.type_ref, f"field '{node.name}': {problem}")
        self.context.record(node, type_)
        self.context.program.full_name[node] = node.name
        return types.Field(node.name, type_, node)

    def _unique(self, nodes: Sequence[ast.Declaration], what: str) -> None:
        seen: dict[str, ast.Declaration] = {}
        for node in nodes:
            if node.name in seen:
                first = seen[node.name].position
                self.context.error(node, f"{what} '{node.name}' is already declared at {first}")
            seen.setdefault(node.name, node)

    def check_enum(self, node: ast.EnumDeclaration) -> None:
        self._unique(node.members, "member")
        if node.underlying is None:
            type_: types.Type = types.Enum(node)
        else:
            type_ = self._serializable(node, self.resolver.resolve(node.underlying))
        for member in node.members:
            self.context.record(member, type_)
        self.context.record(node, type_)
        self.context.declare(node)

    def _serializable(self, node: ast.EnumDeclaration, underlying: types.Type) -> types.Type:
        assert node.underlying is not None
        if isinstance(underlying, types.Unknown):
            return underlying
        if not isinstance(underlying, types.Bits):
            return self.context.error(
                node.underlying, f"an enum's type must be bit<> or int<>, not {underlying}"
            )
        type_ = types.SerializableEnum(node, underlying)
        # members may use the values of earlier ones
        self.context.record(node, type_)
        with self.context.nested_scope():
            self.context.scope.names[node.name] = node
            for member in node.members:
                self._member_value(member, underlying)
                self.context.record(member, type_)
                self.context.scope.names.setdefault(member.name, member)
        return type_

    def _member_value(self, member: ast.EnumMember, underlying: types.Bits) -> None:
        assert member.value is not None
        # of a member whose value is reported below
        self.context.program.enum_values[member] = 0
        self.context.check(member.value, underlying)
        if not self.coercion.coerce(member.value, underlying, f"member '{member.name}'"):
            return
        value = self.context.program.const_value.get(member.value)
        if isinstance(value, int):
            self.context.program.enum_values[member] = value
        elif not isinstance(self.context.program.type_of[member.value], types.Unknown):
            self.context.error(
                member.value, f"the value of '{member.name}' is not known at compile time"
            )

    def check_errors(self, node: ast.ErrorDeclaration) -> None:
        for member in node.members:
            if member.name in self.context.error_members:
                first = self.context.error_members[member.name].position
                self.context.error(member, f"error '{member.name}' is already declared at {first}")
                continue
            self.context.error_members[member.name] = member
            self.context.program.error_codes[member] = len(self.context.program.error_codes)
            self.context.record(member, types.ERROR)

    def check_match_kinds(self, node: ast.MatchKindDeclaration) -> None:
        for member in node.members:
            known = self.context.program.match_kinds.get(member.name)
            if known is not None:
                first = known.position
                self.context.error(
                    member, f"match kind '{member.name}' is already declared at {first}"
                )
                continue
            self.context.program.match_kinds[member.name] = member
            self.context.record(member, types.MATCH_KIND)
            self.context.scope.names.setdefault(member.name, member)

    def check_typedef(self, node: ast.TypedefDeclaration) -> None:
        type_ = self.resolver.resolve(node.type_ref)
        if node.new_type and not isinstance(type_, types.Unknown):
            if isinstance(type_, _RENAMABLE):
                type_ = types.NewType(node, type_)
            else:
                type_ = self.context.error(
                    node.type_ref, f"'type' cannot make a new type of {type_}"
                )
        self.context.record(node, type_)
        self.context.declare(node)

    # ---- interfaces

    def check_extern(self, node: ast.ExternDeclaration) -> None:
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        type_ = types.Extern(node, arguments)
        self.context.record(node, type_)
        self.context.declare(node)
        with self.context.nested_scope():
            for parameter in node.type_parameters:
                self.context.declare(parameter)
            seen: list[tuple[str, tuple[str, ...]]] = []
            for method in node.methods:
                owner = "extern constructor" if method.return_type is None else "extern"
                function = self.functions.function_type(method, owner)
                self.context.record(method, function)
                self._own_type(node, method, function)
                if method.name == node.name and method.return_type is not None:
                    self.context.error(
                        method, f"only constructors of '{node.name}' may have its name"
                    )
                signature = (method.name, tuple(p.name for p in method.parameters))
                if signature in seen:
                    self.context.error(
                        method, f"'{method.name}' is declared twice with these parameters"
                    )
                seen.append(signature)

    def _own_type(
        self, owner: ast.ExternDeclaration, method: ast.FunctionDeclaration, type_: types.Function
    ) -> None:
        """Reports a method that has a parameter or a result of the extern type that declares it."""
        places = [(p.declaration or method, p.type) for p in type_.parameters]
        if method.return_type is not None:
            places.append((method, type_.result))
        for place, given in places:
            if isinstance(given, types.Extern) and given.declaration is owner:
                self.context.error(
                    place, f"a method of {owner.name} cannot take or give a {owner.name}"
                )

    def check_package(self, node: ast.PackageDeclaration) -> None:
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        with self.context.nested_scope():
            for parameter in node.type_parameters:
                self.context.declare(parameter)
            with self.context.nested_scope():
                parameters = self.parameters.parameter_types(node.parameters, "constructor")
        self.context.record(node, types.Package(node, arguments, parameters))
        self.context.declare(node)

    def check_block_type(
        self, node: ast.ParserTypeDeclaration | ast.ControlTypeDeclaration
    ) -> None:
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        is_parser = isinstance(node, ast.ParserTypeDeclaration)
        with self.context.nested_scope():
            for parameter in node.type_parameters:
                self.context.declare(parameter)
            with self.context.nested_scope():
                owner = "parser" if is_parser else "control"
                parameters = self.parameters.parameter_types(node.parameters, owner)
        make = types.Parser if is_parser else types.Control
        self.context.record(node, make(node, arguments, parameters))
        self.context.declare(node)
