"""Parses parsers, controls, packages and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar

from p4native.compiler import ast
from p4native.compiler.source import Position
from p4native.compiler.syntax.annotations import AnnotationParser
from p4native.compiler.syntax.cursor import IN_CONTROL, IN_PARSER, Cursor
from p4native.compiler.syntax.declarations import Annotations, DeclarationParser
from p4native.compiler.syntax.expressions import ExpressionParser
from p4native.compiler.syntax.lexer import IDENTIFIER, Token
from p4native.compiler.syntax.statements import StatementParser
from p4native.compiler.syntax.typerefs import TypeParser

PROPERTIES = frozenset({"key", "actions", "entries", "default_action", "size"})
T = TypeVar("T")
StateItem = ast.Statement | ast.Declaration | ast.Transition


@dataclass
class _Properties:
    """The properties of a table that have been parsed so far."""

    keys: tuple[ast.KeyElement, ...] = ()
    actions: tuple[ast.ActionRef, ...] = ()
    entries: tuple[ast.TableEntry, ...] = ()
    entries_constant: bool = False
    entries_annotations: Annotations = ()
    default_action: ast.ActionRef | None = None
    default_constant: bool = False
    others: list[ast.TableProperty] = field(default_factory=list)
    written: set[str] = field(default_factory=set)


class BlockParser:
    """The part that parses parsers with their states, controls with their actions and tables, and
    packages."""

    def __init__(
        self,
        cursor: Cursor,
        types: TypeParser,
        expressions: ExpressionParser,
        annotations: AnnotationParser,
        statements: StatementParser,
        declarations: DeclarationParser,
    ) -> None:
        self.cursor = cursor
        self.types = types
        self.expressions = expressions
        self.annotations = annotations
        self.statements = statements
        self.declarations = declarations

    # ---- headers of parsers, controls and packages

    def package(self, annotations: Annotations) -> ast.PackageDeclaration:
        self.cursor.expect("package")
        name = self.cursor.name("of a package")
        self.cursor.declare(name.text, is_type=True)
        with self.cursor.scope():
            type_parameters = self.types.type_parameters()
            parameters = self.declarations.parameters()
        self.cursor.expect(";")
        return ast.PackageDeclaration(
            name.position, name.text, annotations, type_parameters, parameters
        )

    def parser_declaration(self, annotations: Annotations) -> ast.Declaration:
        return self._declaration(
            "parser", annotations, ast.ParserTypeDeclaration, self._parser_body
        )

    def control_declaration(self, annotations: Annotations) -> ast.Declaration:
        return self._declaration(
            "control", annotations, ast.ControlTypeDeclaration, self._control_body
        )

    def _declaration(
        self,
        keyword: str,
        annotations: Annotations,
        type_declaration: Callable[..., ast.Declaration],
        body: Callable[..., ast.Declaration],
    ) -> ast.Declaration:
        """Parses a parser or control, or only its type. body: parses what follows the header."""
        self.cursor.expect(keyword)
        name = self.cursor.name(f"of a {keyword}")
        self.cursor.declare(name.text, is_type=True)
        with self.cursor.nested(), self.cursor.scope():
            generics = self.types.type_parameters()
            parameters = self.declarations.parameters()
            if self.cursor.accept(";"):
                return type_declaration(name.position, name.text, annotations, generics, parameters)
            constructor = self.declarations.parameters() if self.cursor.at("(") else ()
            return body(name, annotations, generics, parameters, constructor)

    def _parser_body(
        self,
        name: Token,
        annotations: Annotations,
        generics: tuple[ast.TypeParameter, ...],
        parameters: tuple[ast.Parameter, ...],
        constructor: tuple[ast.Parameter, ...],
    ) -> ast.ParserDeclaration:
        errors = self.cursor.diagnostics.error_count
        items = self.cursor.block(self._parser_item)
        states = tuple(i for i in items if isinstance(i, ast.ParserState))
        local = tuple(i for i in items if not isinstance(i, ast.ParserState))
        if not states and self.cursor.diagnostics.error_count == errors:
            self.cursor.diagnostics.error(name.position, f"parser '{name.text}' has no states")
        first_state = next((i for i, d in enumerate(items) if d in states), len(items))
        for late in items[first_state:]:
            if not isinstance(late, ast.ParserState):
                self.cursor.diagnostics.error(
                    late.position, f"'{late.name}' must be declared before the first state"
                )
        return ast.ParserDeclaration(
            name.position, name.text, annotations, generics, parameters, constructor, local, states
        )

    def _parser_item(self) -> ast.Declaration:
        annotations = self.annotations.read()
        if self.cursor.at("state") and self.cursor.peek().kind == IDENTIFIER:
            return self._state(annotations)
        if self.cursor.at("value_set"):
            return self._value_set(annotations)
        return self._local(annotations, "a parser")

    def _local(self, annotations: Annotations, where: str) -> ast.Declaration:
        """Parses a constant, variable or instance that is declared in a parser or control."""
        if self.cursor.at("const"):
            return self.statements.constant(annotations)
        if not self.types.at_type():
            self.cursor.fail_expected("a declaration", f"in {where}")
        item = self.statements.typed_item(annotations)
        if not isinstance(item, ast.Declaration):
            self.cursor.fail(f"a statement must be in the body of {where}", item.position)
        return item

    def _control_body(
        self,
        name: Token,
        annotations: Annotations,
        generics: tuple[ast.TypeParameter, ...],
        parameters: tuple[ast.Parameter, ...],
        constructor: tuple[ast.Parameter, ...],
    ) -> ast.ControlDeclaration:
        errors = self.cursor.diagnostics.error_count
        items = self.cursor.block(self._control_item)
        bodies = [i for i in items if isinstance(i, ast.Block)]
        local = tuple(i for i in items if isinstance(i, ast.Declaration))
        if not bodies:
            if self.cursor.diagnostics.error_count == errors:
                self.cursor.diagnostics.error(
                    name.position, f"control '{name.text}' has no apply block"
                )
            bodies = [ast.Block(name.position, ())]
        if len(bodies) > 1:
            self.cursor.diagnostics.error(bodies[1].position, "a control has one apply block only")
        elif bodies[0] in items and items[-1] is not bodies[0]:
            place = items[-1].position
            hint = "declare tables, actions and variables above it"
            self.cursor.diagnostics.error(place, "nothing may follow the apply block", hint)
        return ast.ControlDeclaration(
            name.position,
            name.text,
            annotations,
            generics,
            parameters,
            constructor,
            local,
            bodies[0],
        )

    def _control_item(self) -> ast.Declaration | ast.Block:
        if self.cursor.at("apply"):
            self.cursor.advance()
            self._refuse_parentheses()
            return self.statements.block(self.annotations.read())
        annotations = self.annotations.read()
        if self.cursor.at("action"):
            return self.action(annotations)
        if self.cursor.at("table"):
            return self.table(annotations)
        return self._local(annotations, "a control")

    def _refuse_parentheses(self) -> None:
        """Refuses `()` between `apply` and its block, and passes over them."""
        if self.cursor.at("(") and self.cursor.peek().kind == ")":
            hint = "the block of a control has none: apply { ... }"
            place = self.cursor.token.position
            self.cursor.diagnostics.error(place, "'apply' has no parentheses here", hint)
            self.cursor.advance()
            self.cursor.advance()

    # ---- parser states

    def _state(self, annotations: Annotations) -> ast.ParserState:
        self.cursor.expect("state")
        name = self.cursor.name("of a state")
        with self.cursor.scope():
            items: list[ast.Statement | ast.Declaration] = []
            transition: ast.Transition | None = None
            found: tuple[StateItem, ...] = self.cursor.block(self._state_item, IN_PARSER)
            for item in found:
                if isinstance(item, ast.Transition):
                    transition = item
                elif transition is None:
                    items.append(item)
                else:
                    empty = isinstance(item, ast.EmptyStatement)
                    hint = "no ';' follows the '}' of select" if empty else ""
                    self.cursor.diagnostics.error(
                        item.position, "nothing may follow the transition", hint
                    )
        return ast.ParserState(name.position, name.text, annotations, tuple(items), transition)

    def _state_item(self) -> StateItem:
        if self.cursor.at("transition"):
            return self._transition()
        return self.statements.statement_or_declaration()

    def _transition(self) -> ast.Transition:
        start = self.cursor.expect("transition").position
        if not self.cursor.at("select"):
            target = self._state_ref()
            self.cursor.expect(";")
            return ast.Transition(start, target)
        self.cursor.advance()
        self.cursor.operators = 0
        self.cursor.expect("(")
        subject = self.cursor.comma_list(self.expressions.expression, ")")
        cases = self.cursor.block(self._select_case, IN_PARSER)
        return ast.Transition(start, None, subject, cases)

    def _state_ref(self) -> ast.StateRef:
        name = self.cursor.name("of a state")
        return ast.StateRef(name.position, name.text)

    def _select_case(self) -> ast.SelectCase:
        start = self.cursor.token.position
        keyset = self.expressions.keyset()
        self.cursor.expect(":", "after a select key")
        target = self._state_ref()
        self.cursor.expect(";")
        return ast.SelectCase(start, keyset, target)

    def _value_set(self, annotations: Annotations) -> ast.ValueSet:
        self.cursor.expect("value_set")
        self.cursor.operators = 0
        self.cursor.expect("<")
        type_ref = self.types.type_ref()
        self.cursor.expect(">")
        self.cursor.expect("(")
        size = self.expressions.root_expression()
        self.cursor.expect(")")
        name = self.cursor.name("of a value set")
        self.cursor.expect(";")
        self.cursor.declare(name.text, is_type=False)
        return ast.ValueSet(name.position, name.text, annotations, type_ref, size)

    # ---- actions and tables

    def action(self, annotations: Annotations) -> ast.ActionDeclaration:
        self.cursor.expect("action")
        name = self.cursor.name("of an action")
        self.cursor.declare(name.text, is_type=False)
        with self.cursor.scope():
            parameters = self.declarations.parameters()
            body = self.statements.block()
        return ast.ActionDeclaration(name.position, name.text, annotations, parameters, body)

    def table(self, annotations: Annotations) -> ast.TableDeclaration:
        self.cursor.expect("table")
        name = self.cursor.name("of a table")
        self.cursor.declare(name.text, is_type=False)
        found = _Properties()
        self.cursor.block(lambda: self._property(found), IN_CONTROL)
        return ast.TableDeclaration(
            name.position,
            name.text,
            annotations,
            found.keys,
            found.actions,
            found.entries,
            found.entries_constant,
            found.entries_annotations,
            found.default_action,
            found.default_constant,
            tuple(found.others),
            frozenset(found.written),
        )

    def _property(self, found: _Properties) -> None:
        annotations = self.annotations.read()
        constant = self.cursor.accept("const")
        name = self.cursor.name("of a table property")
        place = name.position
        if name.text in found.written:
            self.cursor.diagnostics.error(place, f"table property '{name.text}' is given twice")
        found.written.add(name.text)
        self.cursor.expect("=", f"after '{name.text}'")
        if constant and name.text in ("key", "actions"):
            self.cursor.diagnostics.error(place, f"table property '{name.text}' cannot be const")
        self._property_value(found, name.text, constant, place, annotations)

    def _property_value(
        self,
        found: _Properties,
        name: str,
        constant: bool,
        place: Position,
        annotations: Annotations,
    ) -> None:
        if name == "key":
            if "entries" in found.written:
                self.cursor.diagnostics.error(place, "the key must stand before the entries")
            found.keys = self._list(self._key_element)
        elif name == "actions":
            found.actions = self._list(self._listed_action)
        elif name == "entries":
            found.entries_constant, found.entries_annotations = constant, annotations
            found.entries = self._list(self._entry)
        elif name == "default_action":
            if "actions" not in found.written:
                self.cursor.diagnostics.error(
                    place, "the actions must stand before the default action"
                )
            found.default_constant = constant
            found.default_action = self._action_ref(annotations)
            self.cursor.expect(";")
        else:
            self._misspelt_property(name, place)
            value = self.expressions.root_expression()
            self.cursor.expect(";")
            found.others.append(ast.TableProperty(place, name, value, constant, annotations))

    def _list(self, read: Callable[[], T]) -> tuple[T, ...]:
        return self.cursor.block(read, IN_CONTROL, PROPERTIES)

    def _misspelt_property(self, name: str, place: Position) -> None:
        """Refuses a property that has a block and almost the name of one that takes a block."""
        close = get_close_matches(name, ("key", "actions", "entries"), 1)
        if close and self.cursor.at("{"):
            hint = f"did you mean '{close[0]}'?"
            self.cursor.fail(f"a table has no property '{name}'", place, hint)

    def _key_element(self) -> ast.KeyElement:
        start = self.cursor.token.position
        expression = self.expressions.root_expression()
        self.cursor.expect(":", "between key and match kind")
        kind = self.cursor.name("of a match kind")
        annotations = self.annotations.read()
        self.cursor.expect(";")
        match_kind = ast.NameExpression(kind.position, kind.text)
        return ast.KeyElement(start, expression, match_kind, annotations)

    def _listed_action(self) -> ast.ActionRef:
        reference = self._action_ref(self.annotations.read())
        self.cursor.expect(";")
        return reference

    def _action_ref(self, annotations: Annotations) -> ast.ActionRef:
        start = self.cursor.token.position
        self.cursor.operators = 0
        absolute = self.cursor.accept(".")
        name = self.cursor.name("of an action")
        arguments = self.expressions.arguments() if self.cursor.at("(") else None
        return ast.ActionRef(self.cursor.span(start), name.text, absolute, arguments, annotations)

    def _entry(self) -> ast.TableEntry:
        start = self.cursor.token.position
        constant = self.cursor.accept("const")
        priority = self._entry_priority()
        keyset = self.expressions.keyset()
        self.cursor.expect(":", "between an entry's key and its action")
        action = self._action_ref(())
        annotations = self.annotations.read()
        self.cursor.expect(";")
        return ast.TableEntry(start, keyset, action, annotations, priority, constant)

    def _entry_priority(self) -> ast.Expression | None:
        if not (self.cursor.at("priority") and self.cursor.peek().kind == "="):
            return None
        self.cursor.advance()
        self.cursor.advance()
        priority = self.expressions.operand()
        self.cursor.expect(":", "after an entry's priority")
        return priority
