"""The names of a program: which declaration and type the name at a place has, and how they are
shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from p4native.compiler import ast, types
from p4native.compiler.source import Position
from p4native.compiler.typed import CallInfo, TypedProgram, Value
from p4native.compiler.types import width_bits


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name where it is written. declaration: None for what the language itself provides. value:
    the constant that it stands for, if any."""

    name: str
    position: Position
    declaration: ast.Declaration | None
    type: types.Type | None
    value: Value | None = None


@dataclass(frozen=True)
class Symbols:
    """All names of a program by the file and line on which they are written."""

    by_line: dict[tuple[str, int], list[Symbol]] = field(default_factory=dict)

    def at(self, file: str, line: int, column: int, name: str) -> Symbol | None:
        """Returns the symbol at a place. line, column: counted from 1. name: the word that the
        source has there; the names in a macro have the place of the macro, and are passed over."""
        for symbol in self.by_line.get((file, line), ()):
            place = symbol.position
            if symbol.name == name and place.column <= column <= place.column + len(name):
                return symbol
        return None

    def named(self, name: str) -> ast.Declaration | None:
        """Returns the first declaration called `name`, for names whose place is not known."""
        for symbols in self.by_line.values():
            for symbol in symbols:
                if symbol.name == name and symbol.declaration is not None:
                    return symbol.declaration
        return None


def symbols_of(program: TypedProgram) -> Symbols:
    symbols = Symbols()
    for symbol in _all(program):
        place = symbol.position
        symbols.by_line.setdefault((place.file, place.line), []).append(symbol)
    return symbols


def _all(program: TypedProgram) -> Iterator[Symbol]:
    for node, declaration in program.decl_of.items():
        if isinstance(node, ast.Member):
            yield _of_use(program, node, node.member, node.member_position, declaration)
        elif isinstance(node, (ast.NameExpression, ast.NamedTypeRef, ast.StateRef, ast.ActionRef)):
            yield _of_use(program, node, node.name, _after_dot(node), declaration)
    for call, info in program.calls.items():
        yield from _of_call(program, call, info)
    for node in program.type_of:
        if isinstance(node, ast.Member) and node not in program.decl_of:
            yield _of_use(program, node, node.member, node.member_position, None)
    for declaration in _declarations(program.tree):
        known = program.type_of_declaration.get(declaration)
        value = constant_of(program, declaration)
        yield Symbol(declaration.name, declaration.position, declaration, known, value)


def _declarations(tree: ast.Program) -> Iterator[ast.Declaration]:
    unnamed = (ast.ErrorDeclaration, ast.MatchKindDeclaration)
    for node in ast.walk(tree):
        if isinstance(node, ast.Declaration) and not isinstance(node, unnamed):
            yield node


def _of_use(
    program: TypedProgram,
    node: ast.Node,
    name: str,
    position: Position,
    declaration: ast.Declaration | None,
) -> Symbol:
    known = program.type_of_declaration.get(declaration) if declaration is not None else None
    value = None
    if isinstance(node, ast.Expression):
        known = program.type_of.get(node, known)
        value = program.const_value.get(node)
    return Symbol(name, position, declaration, known, value)


def _of_call(program: TypedProgram, call: ast.Call, info: CallInfo) -> Iterator[Symbol]:
    callee, target = call.callee, info.target
    known = program.type_of_declaration.get(target) if target is not None else None
    if isinstance(target, ast.FunctionDeclaration):
        parameters = tuple(bound.parameter for bound in info.arguments)
        known = types.Function(target, (), parameters, info.result)
    if isinstance(callee, ast.Member):
        yield Symbol(info.method, callee.member_position, target, known)
    elif isinstance(callee, ast.NameExpression):
        yield Symbol(callee.name, _after_dot(callee), target, known)


def _after_dot(node: ast.Node) -> Position:
    """Returns the place of a name without the dot of `.name`."""
    place = node.position
    if getattr(node, "absolute", False):
        return place._replace(column=place.column + 1, length=max(1, place.length - 1))
    return place


def constant_of(program: TypedProgram, declaration: ast.Declaration) -> Value | None:
    """Returns the value of a constant or of a member of a serializable enum, if it is known."""
    if isinstance(declaration, ast.Constant):
        return program.const_value.get(declaration.value)
    if isinstance(declaration, ast.EnumMember):
        return program.enum_values.get(declaration)
    return None


# ---- how a symbol is shown


def shown(symbol: Symbol, program: TypedProgram) -> str:
    """Returns the declaration of a symbol in one line of P4, without a body: `bit<32> slot`,
    `action forward(bit<9> port)`."""
    return signature(symbol.name, symbol.declaration, symbol.type, program)


def signature(
    name: str,
    declaration: ast.Declaration | None,
    type_: types.Type | None,
    program: TypedProgram,
) -> str:
    if isinstance(type_, types.Function):
        return str(type_)
    if isinstance(declaration, _BLOCKS):
        kind = type(declaration).__name__.removesuffix("Declaration").lower()
        return f"{kind} {declaration.name}({_parameters(declaration.parameters, program)})"
    if isinstance(declaration, ast.TableDeclaration):
        return _table_text(declaration)
    if isinstance(declaration, ast.StructDeclaration):
        return _struct_text(declaration, program)
    word = _WORDS.get(type(declaration)) if declaration is not None else None
    if word is not None and not isinstance(declaration, ast.TypedefDeclaration):
        return f"{word} {name}"
    if isinstance(declaration, ast.TypedefDeclaration):
        kind = "type" if declaration.new_type else "typedef"
        return f"{kind} {program.type_at.get(declaration.type_ref, '?')} {name}"
    direction = f"{declaration.direction} " if isinstance(declaration, ast.Parameter) else ""
    const = "const " if isinstance(declaration, ast.Constant) else ""
    return f"{const}{direction.lstrip()}{type_ if type_ is not None else '?'} {name}"


_BLOCKS = (ast.ActionDeclaration, ast.ControlDeclaration, ast.ParserDeclaration)
_WORDS: dict[type, str] = {
    ast.ParserState: "state",
    ast.EnumDeclaration: "enum",
    ast.ExternDeclaration: "extern",
    ast.PackageDeclaration: "package",
    ast.ParserTypeDeclaration: "parser",
    ast.ControlTypeDeclaration: "control",
    ast.TypeParameter: "type parameter",
}


def _parameters(parameters: Iterable[ast.Parameter], program: TypedProgram) -> str:
    return ", ".join(
        f"{p.direction} {program.type_at.get(p.type_ref, '?')} {p.name}".lstrip()
        for p in parameters
    )


def _table_text(table: ast.TableDeclaration) -> str:
    actions = ", ".join(action.name for action in table.actions)
    kinds = ", ".join(key.match_kind.name for key in table.keys)
    return f"table {table.name}  // keys: {kinds or 'none'}; actions: {actions or 'none'}"


def _struct_text(declaration: ast.StructDeclaration, program: TypedProgram) -> str:
    lines = [
        f"    {program.type_at.get(each.type_ref, '?')} {each.name};" for each in declaration.fields
    ]
    return "\n".join([f"{declaration.kind} {declaration.name} {{", *lines, "}"])


def details(symbol: Symbol, program: TypedProgram) -> list[str]:
    """Returns what else is known of a symbol, a sentence each: width, value, place in its
    header."""
    sentences = []
    width = width_bits(symbol.type) if symbol.type is not None else None
    if width is not None and not isinstance(symbol.declaration, ast.ParserState):
        sentences.append(_width(width))
    if isinstance(symbol.declaration, ast.StructField):
        sentences += _place_in_header(symbol.declaration, program)
    if isinstance(symbol.value, int) and not isinstance(symbol.value, bool):
        sentences.append(f"Its value is {symbol.value}, in hexadecimal {symbol.value:#x}.")
    return sentences


def _width(bits: int) -> str:
    whole = f" ({bits // 8} byte{'s' * (bits != 8)})" if bits % 8 == 0 and bits else ""
    return f"It has {bits} bit{'s' * (bits != 1)}{whole}."


def _place_in_header(entry: ast.StructField, program: TypedProgram) -> list[str]:
    """Says where a field lies in its header, if the fields before it have fixed widths."""
    for owner in program.tree.declarations:
        if isinstance(owner, ast.StructDeclaration) and entry in owner.fields:
            if owner.kind != "header":
                return [f"It belongs to the {owner.kind} {owner.name}."]
            before = owner.fields[: owner.fields.index(entry)]
            kinds = [program.type_of_declaration.get(each) for each in before]
            widths = [width_bits(kind) if kind is not None else None for kind in kinds]
            start = sum(width for width in widths if width is not None)
            at = f", at bit {start}" if None not in widths else ""
            return [f"It belongs to the header {owner.name}{at}."]
    return []
