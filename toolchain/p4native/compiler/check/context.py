"""The state that all checks share: the program being built, diagnostics, scopes, and the kind of
the current code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Protocol

from p4native.compiler import ast, types
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.preprocess import INCLUDE_DIR
from p4native.compiler.source import Position
from p4native.compiler.typed import TypedProgram, Value, qualified


class Check(Protocol):
    """A function that returns the type of an expression, as ExpressionChecker.check does."""

    def __call__(
        self, expression: ast.Expression, expected: types.Type | None = None
    ) -> types.Type: ...


Entry = ast.Declaration | list[ast.FunctionDeclaration]

_TRANSPARENT = (
    ast.Unary,
    ast.Binary,
    ast.Cast,
    ast.Conditional,
    ast.Slice,
    ast.Member,
    ast.Index,
    ast.ListExpression,
)


@dataclass(slots=True)
class Scope:
    """The names declared in one place. parent: the scope around it."""

    parent: Scope | None
    names: dict[str, Entry] = field(default_factory=dict)

    def lookup(self, name: str) -> Entry | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None


@dataclass(slots=True)
class Frame:
    """The kind of code being checked, which decides what is allowed in the code.

    kind: "program", "control", "apply", "parser", "state", "action", "function" or "table". result:
    the type that `return` must give (functions only). table: the table whose properties are
    checked.
    """

    kind: str
    result: types.Type | None = None
    loops: int = 0
    extern: types.Extern | None = None
    table: ast.TableDeclaration | None = None


class Context:
    """The state that all checks share: the program being built, diagnostics, scopes and the current
    code.

    A part is given the parts that it needs when it is made. Checks are recursive: an expression
    contains a type, which contains an expression. Of parts that need each other, the one made last
    therefore registers its check here, and the parts made before it call the check through the
    context.
    """

    # Entered by ExpressionChecker: expression, and what its surroundings expect.
    check: Check

    def __init__(self, tree: ast.Program, diagnostics: Diagnostics) -> None:
        self.program = TypedProgram(tree)
        self.diagnostics = diagnostics
        self.top = Scope(None)
        self.scope = self.top
        self.frame = Frame("program")
        self.prefix = ""
        self.locals: tuple[ast.Declaration, ...] = ()
        """All declarations of the parser or control that is being checked."""
        self.constructor_parameters: set[ast.Parameter] = set()
        self.error_members: dict[str, ast.EnumMember] = {}
        self.leaf_counts: types.LeafCounts = {}

    # ---- diagnostics

    def error(self, where: ast.Node | Position, message: str, hint: str = "") -> types.Type:
        """Reports an error and returns the type that fits every other type. Callers can therefore
        return the result as the type of a wrong expression."""
        self.diagnostics.error(_place(where), message, hint)
        return types.UNKNOWN

    def warn(self, where: ast.Node | Position, kind: str, message: str, hint: str = "") -> None:
        self.diagnostics.warning(_place(where), message, hint, kind)

    # ---- scopes

    @contextmanager
    def nested_scope(self) -> Iterator[None]:
        outer = self.scope
        self.scope = Scope(outer)
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def code(self, frame: Frame) -> Iterator[None]:
        outer = self.frame
        self.frame = frame
        try:
            yield
        finally:
            self.frame = outer

    def declare(self, declaration: ast.Declaration) -> None:
        """Enters a declaration into the current scope. Only functions may share a name."""
        name = declaration.name
        existing = self.scope.names.get(name)
        if existing is None:
            self._warn_shadowing(declaration)
            if isinstance(declaration, ast.FunctionDeclaration):
                self.scope.names[name] = [declaration]
            else:
                self.scope.names[name] = declaration
        elif isinstance(existing, list) and isinstance(declaration, ast.FunctionDeclaration):
            existing.append(declaration)
        else:
            first = existing[0] if isinstance(existing, list) else existing
            hint = ""
            if is_of_library(first):
                hint = f"the library needs this name: call yours My{name[:1].upper()}{name[1:]}"
            self.error(declaration, f"'{name}' is already declared at {first.position}", hint)
        self._settle_name(declaration)
        self.program.full_name[declaration] = qualified(self.prefix, declaration)

    def _settle_name(self, declaration: ast.Declaration) -> None:
        """Replaces an expression in @name by the string that is its value."""
        annotation = declaration.annotation("name")
        if annotation is None or not annotation.arguments:
            return
        (given,) = annotation.arguments
        if not isinstance(given, ast.StringLiteral):
            self.check(given)
            value = self.program.const_value.get(given)
            if not isinstance(value, str):
                self.error(given, "@name needs a string known at compile time")
                value = declaration.name
            annotation.arguments = (ast.StringLiteral(given.position, value),)

    def _warn_shadowing(self, declaration: ast.Declaration) -> None:
        if self.scope.parent is None or isinstance(declaration, ast.TypeParameter):
            return
        outer = self.scope.parent.lookup(declaration.name)
        if outer is None:
            return
        if isinstance(outer, list):
            outer = outer[0]
        local = isinstance(declaration, (ast.Variable, ast.Constant))
        among_statements = self.frame.kind not in ("control", "parser")
        if isinstance(outer, ast.Parameter) and local and among_statements:
            message = f"'{declaration.name}' is already a parameter, declared at {outer.position}"
            self.error(declaration, message, "give it another name")
            return
        message = f"'{declaration.name}' hides the declaration at {outer.position}"
        self.warn(declaration, "shadow", message, "give it another name")

    def lookup(self, name: str, absolute: bool) -> Entry | None:
        return (self.top if absolute else self.scope).lookup(name)

    def suggest(self, name: str) -> str:
        """Returns a hint with the declared name that is closest to `name`, or an empty string if
        none is close."""
        return self._declared_later(name) or did_you_mean(name, set(self._visible()))

    def suggest_value(self, name: str) -> str:
        """Returns the same hint for a name that must be that of a value. If the closest name is
        that of a type, the hint has the values of this type."""
        if hint := self._declared_later(name) or self._field_of(name):
            return hint
        visible = self._visible()
        values = {n for n, entry in visible.items() if not isinstance(entry, _NO_VALUES)}
        close = get_close_matches(name, sorted(visible), 1)
        of_type = [n for n in sorted(values) if close and self._type_name(visible[n]) == close[0]]
        if not of_type:
            return did_you_mean(name, values)
        return f"did you mean {' or '.join(map(repr, of_type[:3]))}, of type {close[0]}?"

    def _declared_later(self, name: str) -> str:
        """Returns a hint if `name` is declared further down, outside of every block or in the block
        that is being checked."""
        for declarations in (self.locals, self.program.tree.declarations):
            waiting = [each for each in declarations if each not in self.program.full_name]
            for later in waiting[1:]:  # the first one is being checked itself
                if later.name == name:
                    return f"names are declared before they are used: move {later.position} up"
        return ""

    def _field_of(self, name: str) -> str:
        """Returns a hint if `name` is that of a field of a struct that a parameter is."""
        for owner, entry in self._visible().items():
            if isinstance(entry, ast.Parameter):
                type_ = self.program.type_of_declaration.get(entry)
                if isinstance(type_, types.Struct) and type_.field(name) is not None:
                    return f"did you mean '{owner}.{name}'?"
        return ""

    def _visible(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        scope: Scope | None = self.scope
        while scope is not None:
            found = {**scope.names, **found}
            scope = scope.parent
        return found

    def _type_name(self, entry: Entry) -> str:
        type_ = None if isinstance(entry, list) else self.program.type_of_declaration.get(entry)
        return getattr(type_, "name", "")

    def record(self, declaration: ast.Declaration, type_: types.Type) -> None:
        self.program.type_of_declaration[declaration] = type_

    def set_constant(self, expression: ast.Expression, value: Value) -> None:
        self.program.const_value[expression] = value

    # ---- compile-time known

    def known(self, expression: ast.Expression) -> bool:
        """Whether the expression's value is known once the program is instantiated."""
        if expression in self.program.const_value:
            return True
        if isinstance(expression, ast.NameExpression):
            return self._known_name(expression)
        if isinstance(expression, (ast.ConstructorCall, ast.InvalidHeader, ast.DefaultInitializer)):
            return True
        if isinstance(expression, _TRANSPARENT):
            return all(
                self.known(c) for c in ast.children(expression) if isinstance(c, ast.Expression)
            )
        if isinstance(expression, ast.StructExpression):
            return all(self.known(m.value) for m in expression.members)
        return False

    def _known_name(self, expression: ast.NameExpression) -> bool:
        declaration = self.program.decl_of.get(expression)
        if isinstance(declaration, ast.Parameter):
            type_ = self.program.type_of_declaration.get(declaration)
            return declaration in self.constructor_parameters or isinstance(type_, types.Extern)
        return isinstance(declaration, (ast.Instantiation, ast.Constant))


_NO_VALUES = (
    ast.StructDeclaration,
    ast.ExternDeclaration,
    ast.PackageDeclaration,
    ast.ParserTypeDeclaration,
    ast.ControlTypeDeclaration,
)
"""Declarations of types that no expression can begin with."""


def did_you_mean(name: str, names: set[str]) -> str:
    """Returns a hint with the one of `names` that is closest to `name`, or an empty string if none
    is close."""
    same = [each for each in sorted(names) if each.lower() == name.lower()]
    close = same or get_close_matches(name, sorted(names), 1)
    return f"did you mean '{close[0]}'?" if close else ""


def is_of_library(declaration: ast.Declaration) -> bool:
    """Whether a declaration is one of core.p4 or v1model.p4."""
    return declaration.position.file.startswith(str(INCLUDE_DIR))


def _place(where: ast.Node | Position) -> Position:
    return where.position if isinstance(where, ast.Node) else where
