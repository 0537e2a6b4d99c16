"""Completes a name at a place: the members of what stands before a dot, or what is visible."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from p4native.compiler import ast, types
from p4native.compiler.syntax.lexer import KEYWORDS
from p4native.compiler.typed import TypedProgram
from p4native.lsp.symbols import signature

_WORD = re.compile(r"\w*$")
_NAME = re.compile(r"[A-Za-z_]\w*$")
_TRANSITION = re.compile(r"\btransition\s+\w*$")
_AFTER_COLON = re.compile(r":\s*\w*$")
_GROUPS = {"]": "[", ")": "("}
_SIZES = ("minSizeInBits", "minSizeInBytes")
_BLOCKS = (
    ast.ControlDeclaration,
    ast.ParserDeclaration,
    ast.ActionDeclaration,
    ast.FunctionDeclaration,
)


class Completion(NamedTuple):
    """A name that fits. kind: "field", "method", "function", "variable", "constant", "type",
    "keyword", "state" or "member". detail: its declaration."""

    label: str
    kind: str
    detail: str = ""


class Step(NamedTuple):
    """A part of a path such as `hdr.tags[0].`. group: "[" or "(" if such a group follows."""

    name: str
    group: str = ""


class Spot(NamedTuple):
    """A place in a file. line, column: counted from 1."""

    file: str
    line: int
    column: int


def completions(program: TypedProgram, spot: Spot, before: str) -> list[Completion]:
    """Returns what can stand at a place. before: the text of its line in front of the place."""
    if "//" in before or before.count('"') % 2:
        return []
    visible = visible_at(program, spot)
    steps = path_before(before)
    if steps:
        type_ = _type_of_path(program, visible, steps)
        return [] if type_ is None else list(_members(program, type_))
    inner = _innermost(program, spot)
    if _TRANSITION.search(before) or (
        isinstance(inner, ast.ParserState) and _AFTER_COLON.search(before)
    ):
        return _states(program, spot)
    if isinstance(inner, ast.TableDeclaration) and _AFTER_COLON.search(before):
        return [Completion(kind, "keyword", "match kind") for kind in program.match_kinds]
    names = [_named(name, declaration, program) for name, declaration in visible.items()]
    return [*names, *(Completion(word, "keyword") for word in sorted(KEYWORDS - {"_"}))]


def path_before(text: str) -> list[Step]:
    """Returns the steps of the path that ends `text`, before the word that is being written. It is
    empty unless a dot stands there."""
    rest = _WORD.sub("", text).rstrip()
    steps: list[Step] = []
    while rest.endswith("."):
        rest, group = _without_groups(rest[:-1].rstrip())
        name = _NAME.search(rest)
        if name is None:
            return []
        steps.insert(0, Step(name[0], group))
        rest = rest[: name.start()].rstrip()
    return steps


def _without_groups(text: str) -> tuple[str, str]:
    """Returns text without the `[...]` and `(...)` that end it, and how the first of them opens."""
    group = ""
    while text and text[-1] in _GROUPS:
        depth, index = 0, len(text)
        while index and (depth or index == len(text)):
            index -= 1
            depth += {"]": 1, ")": 1, "[": -1, "(": -1}.get(text[index], 0)
        group = text[index]
        text = text[:index].rstrip()
    return text, group


# ---- what is visible


def visible_at(program: TypedProgram, spot: Spot) -> dict[str, ast.Declaration]:
    """Returns the declarations that can be named at a place, inner ones in place of outer ones."""
    names = {d.name: d for d in program.tree.declarations if not d.name.startswith("__")}
    block = _enclosing(program, spot)
    if block is None:
        return names
    names.update(_by_name(_parameters(block)))
    names.update(_by_name(getattr(block, "locals", ())))
    inner = _innermost(program, spot)
    if inner is not None:
        names.update(_by_name(_parameters(inner)))
        written = (n for n in ast.walk(inner) if isinstance(n, (ast.Variable, ast.Constant)))
        names.update(_by_name(n for n in written if _is_before(n, spot)))
    return names


def _by_name(declarations: Iterable[ast.Declaration]) -> dict[str, ast.Declaration]:
    return {declaration.name: declaration for declaration in declarations}


def _parameters(node: ast.Node) -> tuple[ast.Parameter, ...]:
    return (*getattr(node, "constructor_parameters", ()), *getattr(node, "parameters", ()))


def _is_before(node: ast.Node, spot: Spot) -> bool:
    place = node.position
    return place.file == spot.file and (place.line, place.column) <= (spot.line, spot.column)


def _enclosing(program: TypedProgram, spot: Spot) -> ast.Declaration | None:
    """Returns the parser, control, action or function around a place: the last declaration that
    begins before it. For a file that is included inside a block, this is the block."""
    before = [d for d in program.tree.declarations if _is_before(d, spot)]
    if before:
        return before[-1] if isinstance(before[-1], _BLOCKS) else None
    around = (d for d in program.tree.declarations if isinstance(d, _BLOCKS))
    return next((d for d in around if any(_is_before(p, spot) for p in _parts(d))), None)


def _parts(block: ast.Declaration) -> tuple[ast.Node, ...]:
    body = getattr(block, "body", None)
    states = getattr(block, "states", ())
    return (*getattr(block, "locals", ()), *states, *((body,) if body is not None else ()))


def _innermost(program: TypedProgram, spot: Spot) -> ast.Node | None:
    """Returns the action, table, state or body around a place."""
    block = _enclosing(program, spot)
    parts = _parts(block) if block is not None else ()
    return max(
        (part for part in parts if _is_before(part, spot)),
        key=lambda part: (part.position.line, part.position.column),
        default=None,
    )


def _states(program: TypedProgram, spot: Spot) -> list[Completion]:
    block = _enclosing(program, spot)
    names = [state.name for state in getattr(block, "states", ())]
    words = [Completion(word, "keyword") for word in ("accept", "reject", "select")]
    return [*(Completion(name, "state", f"state {name}") for name in names), *words]


_KINDS: dict[type, str] = {
    ast.FunctionDeclaration: "function",
    ast.ActionDeclaration: "function",
    ast.Constant: "constant",
    ast.EnumMember: "member",
    ast.ParserState: "state",
    ast.Variable: "variable",
    ast.Parameter: "variable",
    ast.Instantiation: "variable",
    ast.TableDeclaration: "variable",
    ast.StructField: "field",
}


def _named(name: str, declaration: ast.Declaration, program: TypedProgram) -> Completion:
    known = program.type_of_declaration.get(declaration)
    text = signature(name, declaration, known, program).partition("\n")[0]
    return Completion(name, _KINDS.get(type(declaration), "type"), text.rstrip(" {"))


# ---- members


def _type_of_path(
    program: TypedProgram, visible: dict[str, ast.Declaration], steps: list[Step]
) -> types.Type | None:
    first, *rest = steps
    if first.name == "error":
        return types.ERROR
    declaration = visible.get(first.name)
    type_ = program.type_of_declaration.get(declaration) if declaration is not None else None
    type_ = _element(type_, first.group)
    for step in rest:
        type_ = _element(_member_type(type_, step), step.group)
    return type_


def _element(type_: types.Type | None, group: str) -> types.Type | None:
    if group != "[":
        return type_
    return type_.element if isinstance(type_, types.Stack) else None


def _member_type(type_: types.Type | None, step: Step) -> types.Type | None:
    if isinstance(type_, types.StructLike):
        entry = type_.field(step.name)
        return entry.type if entry is not None else None
    if isinstance(type_, types.Stack) and step.name in ("next", "last"):
        return type_.element
    if isinstance(type_, types.Table) and step == Step("apply", "("):
        return types.ApplyResult(type_.declaration)
    return None


def _members(program: TypedProgram, type_: types.Type) -> Iterator[Completion]:
    if isinstance(type_, types.StructLike):
        yield from (Completion(f.name, "field", f"{f.type} {f.name}") for f in type_.fields)
    if isinstance(type_, (types.Header, types.HeaderUnion)):
        yield Completion("isValid", "method", "bool isValid()")
        yield Completion("setValid", "method", "void setValid()")
        yield Completion("setInvalid", "method", "void setInvalid()")
        yield from (Completion(name, "method", f"int {name}()") for name in _SIZES)
    if isinstance(type_, types.Stack):
        yield from _stack_members(type_)
    if isinstance(type_, types.Extern):
        yield from _methods(program, type_)
    if isinstance(type_, types.Table):
        yield Completion("apply", "method", f"apply_result apply()  // of {type_}")
    if isinstance(type_, types.ApplyResult):
        yield Completion("hit", "field", "bool hit")
        yield Completion("miss", "field", "bool miss")
        yield Completion("action_run", "field", f"the action that {type_.table.name} ran")
    if isinstance(type_, types.Block):
        parameters = ", ".join(map(str, type_.parameters))
        yield Completion("apply", "method", f"void apply({parameters})")
    yield from _named_members(program, type_)


def _named_members(program: TypedProgram, type_: types.Type) -> Iterator[Completion]:
    members: Iterable[ast.EnumMember] = ()
    if isinstance(type_, (types.Enum, types.SerializableEnum)):
        members = type_.declaration.members
    elif isinstance(type_, types.Error):
        members = program.error_codes
    yield from (Completion(m.name, "member", f"{type_}.{m.name}") for m in members)


def _stack_members(stack: types.Stack) -> Iterator[Completion]:
    for name in ("next", "last"):
        yield Completion(name, "field", f"{stack.element} {name}  // in parsers only")
    yield Completion("lastIndex", "field", "bit<32> lastIndex  // in parsers only")
    yield Completion("size", "field", f"int size = {stack.size}")
    for name in ("push_front", "pop_front"):
        yield Completion(name, "method", f"void {name}(int count)")


def _methods(program: TypedProgram, extern: types.Extern) -> Iterator[Completion]:
    declaration = extern.declaration
    bindings = dict(zip(declaration.type_parameters, extern.arguments, strict=False))
    for method in declaration.methods:
        known = program.type_of_declaration.get(method)
        if method.name == declaration.name or not isinstance(known, types.Function):
            continue
        yield Completion(method.name, "method", str(types.substitute(known, bindings)))
