"""Top-level declarations: types, externs, packages, instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agglab.compiler import ast, types
from agglab.compiler.check.blocks import Blocks
from agglab.compiler.check.typerefs import MAX_LEAVES, field_problem

_STRUCT_TYPES = {
    "struct": types.Struct,
    "header": types.Header,
    "header_union": types.HeaderUnion,
}
_RENAMABLE = (types.Bits, types.Boolean, types.NewType, types.Varbit, types.SerializableEnum)


class Declarations(Blocks):
    def check_declaration(self, node: ast.Declaration) -> None:
        _CHECKS[type(node)](self, node)

    # ---- types

    def check_struct_declaration(self, node: ast.StructDeclaration) -> None:
        make = _STRUCT_TYPES[node.kind]
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        empty = make(node, arguments)
        self._unique(node.fields, "field")
        with self.nested_scope():
            for parameter in node.type_parameters:
                self.declare(parameter)
            fields = tuple(self._struct_field(empty, f) for f in node.fields)
        type_ = make(node, arguments, fields)
        if self.too_large(type_):
            self.error(node, f"'{node.name}' has more than {MAX_LEAVES} fields")
            type_ = empty
        self.record(node, type_)
        self.declare(node)

    def _struct_field(self, owner: types.StructLike, node: ast.StructField) -> types.Field:
        type_ = self.resolve(node.type_ref)
        problem = field_problem(owner, type_)
        if problem:
            type_ = self.error(node.type_ref, f"field '{node.name}': {problem}")
        self.record(node, type_)
        self.program.full_name[node] = node.name
        return types.Field(node.name, type_, node)

    def _unique(self, nodes: Sequence[ast.Declaration], what: str) -> None:
        seen: dict[str, ast.Declaration] = {}
        for node in nodes:
            if node.name in seen:
                first = seen[node.name].position
                self.error(node, f"{what} '{node.name}' is already declared at {first}")
            seen.setdefault(node.name, node)

    def check_enum(self, node: ast.EnumDeclaration) -> None:
        self._unique(node.members, "member")
        if node.underlying is None:
            type_: types.Type = types.Enum(node)
        else:
            type_ = self._serializable(node, self.resolve(node.underlying))
        for member in node.members:
            self.record(member, type_)
        self.record(node, type_)
        self.declare(node)

    def _serializable(self, node: ast.EnumDeclaration, underlying: types.Type) -> types.Type:
        assert node.underlying is not None
        if isinstance(underlying, types.Unknown):
            return underlying
        if not isinstance(underlying, types.Bits):
            return self.error(
                node.underlying, f"an enum's type must be bit<> or int<>, not {underlying}"
            )
        type_ = types.SerializableEnum(node, underlying)
        # members may use the values of earlier ones
        self.record(node, type_)
        with self.nested_scope():
            self.scope.names[node.name] = node
            for member in node.members:
                self._member_value(member, underlying)
                self.record(member, type_)
                self.scope.names.setdefault(member.name, member)
        return type_

    def _member_value(self, member: ast.EnumMember, underlying: types.Bits) -> None:
        assert member.value is not None
        # of a member whose value is reported below
        self.program.enum_values[member] = 0
        self.check(member.value, underlying)
        if not self.coerce(member.value, underlying, f"member '{member.name}'"):
            return
        value = self.program.const_value.get(member.value)
        if isinstance(value, int):
            self.program.enum_values[member] = value
        elif not isinstance(self.program.type_of[member.value], types.Unknown):
            self.error(member.value, f"the value of '{member.name}' is not known at compile time")

    def check_errors(self, node: ast.ErrorDeclaration) -> None:
        for member in node.members:
            if member.name in self.error_members:
                first = self.error_members[member.name].position
                self.error(member, f"error '{member.name}' is already declared at {first}")
                continue
            self.error_members[member.name] = member
            self.program.error_codes[member] = len(self.program.error_codes)
            self.record(member, types.ERROR)

    def check_match_kinds(self, node: ast.MatchKindDeclaration) -> None:
        for member in node.members:
            known = self.program.match_kinds.get(member.name)
            if known is not None:
                first = known.position
                self.error(member, f"match kind '{member.name}' is already declared at {first}")
                continue
            self.program.match_kinds[member.name] = member
            self.record(member, types.MATCH_KIND)
            self.scope.names.setdefault(member.name, member)

    def check_typedef(self, node: ast.TypedefDeclaration) -> None:
        type_ = self.resolve(node.type_ref)
        if node.new_type and not isinstance(type_, types.Unknown):
            if isinstance(type_, _RENAMABLE):
                type_ = types.NewType(node, type_)
            else:
                type_ = self.error(node.type_ref, f"'type' cannot make a new type of {type_}")
        self.record(node, type_)
        self.declare(node)

    # ---- interfaces

    def check_extern(self, node: ast.ExternDeclaration) -> None:
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        type_ = types.Extern(node, arguments)
        self.record(node, type_)
        self.declare(node)
        with self.nested_scope():
            for parameter in node.type_parameters:
                self.declare(parameter)
            seen: list[tuple[str, tuple[str, ...]]] = []
            for method in node.methods:
                owner = "extern constructor" if method.return_type is None else "extern"
                function = self.function_type(method, owner)
                self.record(method, function)
                self._own_type(node, method, function)
                if method.name == node.name and method.return_type is not None:
                    self.error(method, f"only constructors of '{node.name}' may have its name")
                signature = (method.name, tuple(p.name for p in method.parameters))
                if signature in seen:
                    self.error(method, f"'{method.name}' is declared twice with these parameters")
                seen.append(signature)

    def _own_type(
        self, owner: ast.ExternDeclaration, method: ast.FunctionDeclaration, type_: types.Function
    ) -> None:
        """No parameter or result of a method has the type of the extern that declares it."""
        places = [(p.declaration or method, p.type) for p in type_.parameters]
        if method.return_type is not None:
            places.append((method, type_.result))
        for place, given in places:
            if isinstance(given, types.Extern) and given.declaration is owner:
                self.error(place, f"a method of {owner.name} cannot take or give a {owner.name}")

    def check_package(self, node: ast.PackageDeclaration) -> None:
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        with self.nested_scope():
            for parameter in node.type_parameters:
                self.declare(parameter)
            with self.nested_scope():
                parameters = self.parameter_types(node.parameters, "constructor")
        self.record(node, types.Package(node, arguments, parameters))
        self.declare(node)

    def check_block_type(
        self, node: ast.ParserTypeDeclaration | ast.ControlTypeDeclaration
    ) -> None:
        arguments = tuple(types.TypeVariable(p) for p in node.type_parameters)
        is_parser = isinstance(node, ast.ParserTypeDeclaration)
        with self.nested_scope():
            for parameter in node.type_parameters:
                self.declare(parameter)
            with self.nested_scope():
                owner = "parser" if is_parser else "control"
                parameters = self.parameter_types(node.parameters, owner)
        make = types.Parser if is_parser else types.Control
        self.record(node, make(node, arguments, parameters))
        self.declare(node)

    # ---- instances

    def check_instantiation(self, node: ast.Instantiation) -> None:
        if isinstance(node.type_ref, ast.StackTypeRef):
            self.diagnostics.unsupported(node.position, f"array of instances '{node.name}'")
            type_: types.Type = types.UNKNOWN
        else:
            type_ = self.construct(node, node.type_ref, node.arguments)
        is_main = node.name == "main" and self.frame.kind == "program"
        if is_main and not isinstance(type_, (types.Package, types.Unknown)):
            self.error(node, f"main must be a package, not {type_}")
        problem = self._misplaced(type_)
        if problem:
            self.error(node, f"an instance of {type_} {problem}")
        self.record(node, type_)
        self._methods(node, type_)
        self.declare(node)

    def _misplaced(self, type_: types.Type) -> str:
        """Where an instance of type_ belongs, if not here."""
        place = self.frame.kind
        if isinstance(type_, types.Package) and place != "program":
            return "belongs outside of all blocks"
        if isinstance(type_, types.Control) and place == "parser":
            return "cannot stand in a parser"
        if isinstance(type_, types.Parser) and place == "control":
            return "cannot stand in a control"
        if isinstance(type_, types.Block) and place == "program":
            return "belongs inside a block or a package's arguments"
        return ""

    def _methods(self, node: ast.Instantiation, type_: types.Type) -> None:
        """The bodies an instance gives to its extern's abstract methods."""
        if isinstance(type_, types.Unknown):
            return
        abstract = {}
        if isinstance(type_, types.Extern):
            abstract = {
                _key(m): m
                for m in self.methods_of(type_)
                if m.declaration and m.declaration.abstract
            }
        elif node.initializer is not None:
            self.error(node, f"{type_} has no abstract methods")
            return
        with self.nested_scope():
            for declaration in node.initializer or ():
                self._implementation(node, declaration, type_, abstract)
        for name, _ in abstract:
            self.error(node, f"no body for the abstract method '{name}' of {type_}")

    def _implementation(
        self,
        node: ast.Instantiation,
        declaration: ast.Declaration,
        type_: types.Type,
        abstract: dict[tuple[str, int], types.Function],
    ) -> None:
        if isinstance(declaration, ast.Instantiation):
            self.check_instantiation(declaration)
            return
        assert isinstance(declaration, ast.FunctionDeclaration)
        extern = type_ if isinstance(type_, types.Extern) else None
        function = self.function_type(declaration, "function", body=True, extern=extern)
        self.record(declaration, function)
        wanted = abstract.pop(_key(function), None)
        if wanted is None:
            self.error(
                declaration, f"{type_} has no abstract method '{declaration.name}' like this"
            )
        elif not _same_function(wanted, function):
            self.error(declaration, f"the abstract method is {wanted}, but this is {function}")


def _key(function: types.Function) -> tuple[str, int]:
    name = function.declaration.name if function.declaration else ""
    return name, len(function.parameters)


def _same_function(left: types.Function, right: types.Function) -> bool:
    same = [
        a.type == b.type and a.direction == b.direction
        for a, b in zip(left.parameters, right.parameters, strict=False)
    ]
    return left.result == right.result and all(same)


_CHECKS: dict[type, Callable[[Any, Any], None]] = {
    ast.StructDeclaration: Declarations.check_struct_declaration,
    ast.EnumDeclaration: Declarations.check_enum,
    ast.ErrorDeclaration: Declarations.check_errors,
    ast.MatchKindDeclaration: Declarations.check_match_kinds,
    ast.TypedefDeclaration: Declarations.check_typedef,
    ast.ExternDeclaration: Declarations.check_extern,
    ast.PackageDeclaration: Declarations.check_package,
    ast.ParserTypeDeclaration: Declarations.check_block_type,
    ast.ControlTypeDeclaration: Declarations.check_block_type,
    ast.ParserDeclaration: Declarations.check_parser,
    ast.ControlDeclaration: Declarations.check_control,
    ast.ActionDeclaration: Declarations.check_action,
    ast.Constant: Declarations.check_constant,
    ast.Instantiation: Declarations.check_instantiation,
}


def check_function(checker: Declarations, node: ast.FunctionDeclaration) -> None:
    if node.body is None:
        checker.check_extern_function(node)
    else:
        checker.check_function(node)


_CHECKS[ast.FunctionDeclaration] = check_function
