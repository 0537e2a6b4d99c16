"""Turns written types into types as values, with the rules for where each type is allowed."""

from __future__ import annotations

from typing import cast

from p4native.compiler import ast, types
from p4native.compiler.check.context import Context
from p4native.compiler.syntax.hints import for_type

MAX_WIDTH_BITS = 2048
# the longest field whose length fits the 32 bits that BMv2 computes with
MAX_VARBIT_BITS = (1 << 31) - 1
MAX_STACK_SIZE = 1 << 16
# scalars in a struct, array or tuple
MAX_LEAVES = 1 << 17

_BASE = {
    "bool": types.BOOLEAN,
    "error": types.ERROR,
    "string": types.STRING,
    "void": types.VOID,
    "match_kind": types.MATCH_KIND,
    "int": types.INTEGER,
}
_OBJECTS = (types.Extern, types.Block, types.Package, types.Table, types.Action, types.Function)
_CONSTANT_ONLY = (types.Integer, types.String, types.MatchKind, types.List)


class TypeResolver:
    """The part that turns written types into types as values, and decides where each type is
    allowed."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def too_large(self, type_: types.Type) -> bool:
        """Whether a type has more parts than any program needs."""
        return types.leaf_count(type_, self.context.leaf_counts) > MAX_LEAVES

    def _limited(self, ref: ast.TypeRef, type_: types.Type) -> types.Type:
        if self.too_large(type_):
            return self.context.error(ref, f"a type with more than {MAX_LEAVES} fields")
        return type_

    def resolve(self, ref: ast.TypeRef, generic: bool = False) -> types.Type:
        """Returns the type for which `ref` stands. generic: whether a name without its type
        arguments is allowed."""
        result = self._resolve(ref, generic)
        self.context.program.type_at[ref] = result
        return result

    def _resolve(self, ref: ast.TypeRef, generic: bool) -> types.Type:
        if isinstance(ref, ast.BaseTypeRef):
            return _BASE[ref.name]
        if isinstance(ref, ast.BitsTypeRef):
            return self._bits(ref)
        if isinstance(ref, ast.NamedTypeRef):
            return self._named(ref, generic)
        if isinstance(ref, ast.SpecializedTypeRef):
            return self._specialized(ref)
        if isinstance(ref, ast.StackTypeRef):
            return self._stack(ref)
        if isinstance(ref, ast.TupleTypeRef):
            return self._tuple(ref)
        if isinstance(ref, ast.ListTypeRef):
            return types.List(self.resolve(ref.element))
        return types.DONT_CARE

    def _bits(self, ref: ast.BitsTypeRef) -> types.Type:
        if ref.width is None:
            return types.Bits(1)
        width = self.constant_integer(ref.width, f"the width of {ref.kind}<>")
        if width is None:
            return types.UNKNOWN
        variable, signed = ref.kind == "varbit", ref.kind == "int"
        widest = MAX_VARBIT_BITS if variable else MAX_WIDTH_BITS
        if not signed <= width <= widest:
            return self.context.error(ref, f"width {width} is outside {int(signed)}..{widest}")
        return types.Varbit(width) if variable else types.Bits(width, signed)

    def constant_integer(self, expression: ast.Expression, what: str) -> int | None:
        """Returns the value of an expression that must be a number known at compile time, or None
        after reporting that it is not."""
        type_ = self.context.check(expression)
        if isinstance(type_, types.Unknown):
            return None
        if isinstance(type_, types.SerializableEnum):
            value = self.context.program.const_value.get(expression)
            if isinstance(value, ast.EnumMember):
                return self.context.program.enum_values.get(value)
        if not isinstance(type_, (types.Bits, types.Integer)):
            self.context.error(expression, f"{what} must be a number, not {type_}")
            return None
        value = self.context.program.const_value.get(expression)
        if value is None:
            self.context.error(expression, f"{what} must be known at compile time")
            return None
        return cast(int, value)

    def _named(self, ref: ast.NamedTypeRef, generic: bool) -> types.Type:
        entry = self.context.lookup(ref.name, ref.absolute)
        if entry is None:
            hint = for_type(ref.name) or self.context.suggest(ref.name)
            return self.context.error(ref, f"type '{ref.name}' is not declared", hint)
        if isinstance(entry, list) or (declared := self.declared_type(entry)) is None:
            return self.context.error(ref, f"'{ref.name}' is not a type")
        self.context.program.decl_of[ref] = entry
        parameters = type_parameters(entry)
        if parameters and not generic:
            return self.context.error(
                ref, f"{ref.name} needs {_arguments(len(parameters))}: {ref.name}<...>"
            )
        return declared

    def declared_type(self, declaration: ast.Declaration) -> types.Type | None:
        """Returns the type that a declaration declares, or None if it declares a value."""
        if isinstance(declaration, ast.TypeParameter):
            return types.TypeVariable(declaration)
        if not isinstance(declaration, _TYPE_DECLARATIONS):
            return None
        return self.context.program.type_of_declaration.get(declaration, types.UNKNOWN)

    def _specialized(self, ref: ast.SpecializedTypeRef) -> types.Type:
        base = self.resolve(ref.base, generic=True)
        arguments = tuple(self.resolve(a, generic=False) for a in ref.arguments)
        if isinstance(base, types.Unknown):
            return base
        parameters = type_parameters(self.context.program.decl_of[ref.base])
        if len(parameters) != len(arguments):
            takes = _arguments(len(parameters)) if parameters else "no type arguments"
            return self.context.error(ref, f"{ref.base.name} takes {takes}, not {len(arguments)}")
        if any(_mentions(a, self.context.program.decl_of[ref.base]) for a in arguments):
            return self.context.error(ref, f"{ref.base.name} is its own type argument")
        result = types.substitute(base, dict(zip(parameters, arguments, strict=True)))
        if isinstance(result, types.StructLike):
            for field in result.fields:
                problem = field_problem(result, field.type)
                if problem:
                    return self.context.error(ref, f"field '{field.name}' of {result}: {problem}")
        return self._limited(ref, result)

    def _stack(self, ref: ast.StackTypeRef) -> types.Type:
        element = self.resolve(ref.element)
        size = self.constant_integer(ref.size, "the size of a stack")
        if size is None or isinstance(element, types.Unknown):
            return types.UNKNOWN
        if isinstance(element, _OBJECTS):
            hint = f"the size stands in parentheses: {element}({size}) name;"
            is_extern = isinstance(element, types.Extern)
            problem = f"arrays of {element} are not supported"
            return self.context.error(ref, problem, hint if is_extern else "")
        if isinstance(element, (*_CONSTANT_ONLY, types.Void, types.DontCare, types.Varbit)):
            return self.context.error(ref, f"the elements of an array cannot have type {element}")
        if not 0 <= size <= MAX_STACK_SIZE:
            return self.context.error(
                ref.size, f"size {size} of a stack is outside 0..{MAX_STACK_SIZE}"
            )
        return self._limited(ref, types.Stack(element, size))

    def _tuple(self, ref: ast.TupleTypeRef) -> types.Type:
        elements = tuple(self.resolve(e) for e in ref.elements)
        for node, element in zip(ref.elements, elements, strict=True):
            problem = element_problem(element)
            if problem:
                return self.context.error(node, f"{problem} in a tuple")
        return self._limited(ref, types.Tuple(elements))

    # ---- what may stand where

    def definite_type(self, ref: ast.TypeRef) -> types.Type:
        """Returns the same as `resolve`, but refuses `_` as a type argument, because in this place
        nothing determines the type."""
        result = self.resolve(ref)
        if isinstance(result, types.StructLike) and types.DONT_CARE in result.arguments:
            return self.context.error(ref, f"{result} here needs all its type arguments")
        return result

    def value_type(self, ref: ast.TypeRef, what: str) -> types.Type:
        """Returns the type of a variable. Refuses objects, void and types that exist at compile
        time only."""
        result = self.definite_type(ref)
        if isinstance(result, (*_OBJECTS, types.Void, types.DontCare)):
            hint = f"an instance takes its constructor's arguments: {result}(...) name;"
            is_extern = isinstance(result, types.Extern)
            problem = f"{what} cannot have type {result}"
            return self.context.error(ref, problem, hint if is_extern else "")
        if isinstance(result, _CONSTANT_ONLY):
            return self.context.error(
                ref,
                f"{what} cannot have type {result}: its values exist at compile time only",
                "declare a constant, or use bit<W>",
            )
        return result


_TYPE_DECLARATIONS = (
    ast.StructDeclaration,
    ast.EnumDeclaration,
    ast.TypedefDeclaration,
    ast.ExternDeclaration,
    ast.ParserTypeDeclaration,
    ast.ControlTypeDeclaration,
    ast.ParserDeclaration,
    ast.ControlDeclaration,
    ast.PackageDeclaration,
)


def type_parameters(declaration: ast.Declaration) -> tuple[ast.TypeParameter, ...]:
    return getattr(declaration, "type_parameters", ())


def _mentions(type_: types.Type, declaration: ast.Declaration) -> bool:
    """Whether a type is, or contains, the type that `declaration` declares."""
    parts: tuple[types.Type, ...] = ()
    if isinstance(type_, (types.StructLike, types.Extern, types.Block, types.Package)):
        if type_.declaration is declaration:
            return True
        parts = type_.arguments
    elif isinstance(type_, types.Tuple):
        parts = type_.elements
    elif isinstance(type_, (types.Stack, types.List)):
        parts = (type_.element,)
    return any(_mentions(part, declaration) for part in parts)


def _arguments(count: int) -> str:
    return f"{count} type argument{'s' * (count != 1)}"


def element_problem(type_: types.Type) -> str:
    """Returns the reason why a type cannot be part of a tuple, struct or list, or an empty string
    if it can."""
    if isinstance(type_, (*_OBJECTS, types.Void, types.DontCare)):
        return f"{type_} is not allowed"
    return ""


def field_problem(owner: types.StructLike, type_: types.Type) -> str:
    """Returns the reason why a type cannot be a field of its owner, or an empty string if it can
    (P4_16 section 7.2.8)."""
    if isinstance(type_, (types.Unknown, types.TypeVariable)):
        return ""
    if isinstance(owner, types.Header):
        return _header_field_problem(type_)
    if isinstance(owner, types.HeaderUnion):
        return "" if isinstance(type_, types.Header) else f"a union holds headers, not {type_}"
    if isinstance(type_, _CONSTANT_ONLY):
        return f"{type_} is not allowed"
    return element_problem(type_)


def _header_field_problem(type_: types.Type) -> str:
    while isinstance(type_, types.NewType):
        type_ = type_.underlying
    allowed = (types.Bits, types.Varbit, types.Boolean, types.SerializableEnum, types.TypeVariable)
    if isinstance(type_, (*allowed, types.Unknown)):
        return ""
    if isinstance(type_, types.Stack):
        return _header_field_problem(type_.element)
    if isinstance(type_, types.Struct):
        problems = (_header_field_problem(f.type) for f in type_.fields)
        return next((p for p in problems if p), "")
    return f"a header cannot hold {type_}"
