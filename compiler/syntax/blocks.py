"""Parsing parsers, controls, packages and tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from agglab.compiler import ast
from agglab.compiler.source import Position
from agglab.compiler.syntax.declarations import Annotations, DeclarationParser
from agglab.compiler.syntax.lexer import Token

StateItem = ast.Statement | ast.Declaration | ast.Transition


@dataclass
class _Properties:
    """What a table has said so far."""

    keys: tuple[ast.KeyElement, ...] = ()
    actions: tuple[ast.ActionRef, ...] = ()
    entries: tuple[ast.TableEntry, ...] = ()
    entries_constant: bool = False
    entries_annotations: Annotations = ()
    default_action: ast.ActionRef | None = None
    default_constant: bool = False
    others: list[ast.TableProperty] = field(default_factory=list)
    written: set[str] = field(default_factory=set)


class BlockParser(DeclarationParser):
    # ---- headers of parsers, controls and packages

    def package(self, annotations: Annotations) -> ast.PackageDeclaration:
        self.expect("package")
        name = self.name("of a package")
        self.declare(name.text, is_type=True)
        with self.scope():
            type_parameters = self.type_parameters()
            parameters = self.parameters()
        self.expect(";")
        return ast.PackageDeclaration(
            name.position, name.text, annotations, type_parameters, parameters
        )

    def parser_declaration(self, annotations: Annotations) -> ast.Declaration:
        self.expect("parser")
        name = self.name("of a parser")
        self.declare(name.text, is_type=True)
        with self.nested(), self.scope():
            generics = self.type_parameters()
            parameters = self.parameters()
            if self.accept(";"):
                return ast.ParserTypeDeclaration(
                    name.position, name.text, annotations, generics, parameters
                )
            constructor = self.parameters() if self.at("(") else ()
            return self._parser_body(name, annotations, generics, parameters, constructor)

    def _parser_body(
        self,
        name: Token,
        annotations: Annotations,
        generics: tuple[ast.TypeParameter, ...],
        parameters: tuple[ast.Parameter, ...],
        constructor: tuple[ast.Parameter, ...],
    ) -> ast.ParserDeclaration:
        self.expect("{")
        items = self.until("}", self._parser_item)
        states = tuple(i for i in items if isinstance(i, ast.ParserState))
        local = tuple(i for i in items if not isinstance(i, ast.ParserState))
        if not states:
            self.diagnostics.error(name.position, f"parser '{name.text}' has no states")
        first_state = next((i for i, d in enumerate(items) if d in states), len(items))
        for late in items[first_state:]:
            if not isinstance(late, ast.ParserState):
                self.diagnostics.error(
                    late.position, f"'{late.name}' must be declared before the first state"
                )
        return ast.ParserDeclaration(
            name.position, name.text, annotations, generics, parameters, constructor, local, states
        )

    def _parser_item(self) -> ast.Declaration:
        annotations = self.annotations()
        if self.at("state") and self.peek(2).kind == "{":
            return self._state(annotations)
        if self.at("value_set"):
            return self._value_set(annotations)
        return self._local(annotations, "a parser")

    def _local(self, annotations: Annotations, where: str) -> ast.Declaration:
        """A constant, variable or instance."""
        if self.at("const"):
            return self.constant(annotations)
        if not self.at_type():
            self._expected("a declaration", f"in {where}")
        item = self._typed_item(annotations)
        if not isinstance(item, ast.Declaration):
            self.fail(f"statement outside of the body of {where}", item.position)
        return item

    def control_declaration(self, annotations: Annotations) -> ast.Declaration:
        self.expect("control")
        name = self.name("of a control")
        self.declare(name.text, is_type=True)
        with self.nested(), self.scope():
            generics = self.type_parameters()
            parameters = self.parameters()
            if self.accept(";"):
                return ast.ControlTypeDeclaration(
                    name.position, name.text, annotations, generics, parameters
                )
            constructor = self.parameters() if self.at("(") else ()
            return self._control_body(name, annotations, generics, parameters, constructor)

    def _control_body(
        self,
        name: Token,
        annotations: Annotations,
        generics: tuple[ast.TypeParameter, ...],
        parameters: tuple[ast.Parameter, ...],
        constructor: tuple[ast.Parameter, ...],
    ) -> ast.ControlDeclaration:
        self.expect("{")
        items = self.until("}", self._control_item)
        bodies = [i for i in items if isinstance(i, ast.Block)]
        local = tuple(i for i in items if isinstance(i, ast.Declaration))
        if not bodies:
            self.diagnostics.error(name.position, f"control '{name.text}' has no apply block")
            bodies = [ast.Block(name.position, ())]
        if len(bodies) > 1:
            self.diagnostics.error(bodies[1].position, "a control has one apply block only")
        elif bodies[0] in items and items[-1] is not bodies[0]:
            place = items[-1].position
            self.diagnostics.error(place, "nothing may follow the apply block")
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
        if self.at("apply") and self.peek().kind in ("{", "@"):
            self.advance()
            return self.block(self.annotations())
        annotations = self.annotations()
        if self.at("action"):
            return self.action(annotations)
        if self.at("table"):
            return self.table(annotations)
        return self._local(annotations, "a control")

    # ---- parser states

    def _state(self, annotations: Annotations) -> ast.ParserState:
        self.expect("state")
        name = self.name("of a state")
        self.expect("{")
        with self.scope():
            items: list[ast.Statement | ast.Declaration] = []
            transition: ast.Transition | None = None
            found: tuple[StateItem, ...] = self.until("}", self._state_item)
            for item in found:
                if isinstance(item, ast.Transition):
                    transition = item
                elif transition is None:
                    items.append(item)
                else:
                    self.diagnostics.error(item.position, "nothing may follow the transition")
        return ast.ParserState(name.position, name.text, annotations, tuple(items), transition)

    def _state_item(self) -> StateItem:
        if self.at("transition"):
            return self._transition()
        return self.statement_or_declaration()

    def _transition(self) -> ast.Transition:
        start = self.expect("transition").position
        if not self.at("select"):
            target = self._state_ref()
            self.expect(";")
            return ast.Transition(start, target)
        self.advance()
        self.operators = 0
        self.expect("(")
        subject = self.comma_list(self.expression, ")")
        self.expect("{")
        cases = self.until("}", self._select_case)
        return ast.Transition(start, None, subject, cases)

    def _state_ref(self) -> ast.StateRef:
        name = self.name("of a state")
        return ast.StateRef(name.position, name.text)

    def _select_case(self) -> ast.SelectCase:
        start = self.token.position
        keyset = self.keyset()
        self.expect(":", "after a select key")
        target = self._state_ref()
        self.expect(";")
        return ast.SelectCase(start, keyset, target)

    def _value_set(self, annotations: Annotations) -> ast.ValueSet:
        self.expect("value_set")
        self.operators = 0
        self.expect("<")
        type_ref = self.type_ref()
        self.expect(">")
        self.expect("(")
        size = self.root_expression()
        self.expect(")")
        name = self.name("of a value set")
        self.expect(";")
        self.declare(name.text, is_type=False)
        return ast.ValueSet(name.position, name.text, annotations, type_ref, size)

    # ---- actions and tables

    def action(self, annotations: Annotations) -> ast.ActionDeclaration:
        self.expect("action")
        name = self.name("of an action")
        self.declare(name.text, is_type=False)
        with self.scope():
            parameters = self.parameters()
            body = self.block()
        return ast.ActionDeclaration(name.position, name.text, annotations, parameters, body)

    def table(self, annotations: Annotations) -> ast.TableDeclaration:
        self.expect("table")
        name = self.name("of a table")
        self.declare(name.text, is_type=False)
        found = _Properties()
        self.expect("{")
        self.until("}", lambda: self._property(found))
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
        annotations = self.annotations()
        constant = self.accept("const")
        name = self.name("of a table property")
        place = name.position
        if name.text in found.written:
            self.diagnostics.error(place, f"table property '{name.text}' is given twice")
        found.written.add(name.text)
        self.expect("=", f"after '{name.text}'")
        if constant and name.text in ("key", "actions"):
            self.diagnostics.error(place, f"table property '{name.text}' cannot be const")
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
                self.diagnostics.error(place, "the key must stand before the entries")
            self.expect("{")
            found.keys = self.until("}", self._key_element)
        elif name == "actions":
            self.expect("{")
            found.actions = self.until("}", self._listed_action)
        elif name == "entries":
            self.expect("{")
            found.entries_constant, found.entries_annotations = constant, annotations
            found.entries = self.until("}", self._entry)
        elif name == "default_action":
            if "actions" not in found.written:
                self.diagnostics.error(place, "the actions must stand before the default action")
            found.default_constant = constant
            found.default_action = self._action_ref(annotations)
            self.expect(";")
        else:
            value = self.root_expression()
            self.expect(";")
            found.others.append(ast.TableProperty(place, name, value, constant, annotations))

    def _key_element(self) -> ast.KeyElement:
        start = self.token.position
        expression = self.root_expression()
        self.expect(":", "between key and match kind")
        kind = self.name("of a match kind")
        annotations = self.annotations()
        self.expect(";")
        match_kind = ast.NameExpression(kind.position, kind.text)
        return ast.KeyElement(start, expression, match_kind, annotations)

    def _listed_action(self) -> ast.ActionRef:
        reference = self._action_ref(self.annotations())
        self.expect(";")
        return reference

    def _action_ref(self, annotations: Annotations) -> ast.ActionRef:
        start = self.token.position
        self.operators = 0
        absolute = self.accept(".")
        name = self.name("of an action")
        arguments = self.arguments() if self.at("(") else None
        return ast.ActionRef(self.span(start), name.text, absolute, arguments, annotations)

    def _entry(self) -> ast.TableEntry:
        start = self.token.position
        constant = self.accept("const")
        priority = self._entry_priority()
        keyset = self.keyset()
        self.expect(":", "between an entry's key and its action")
        action = self._action_ref(())
        annotations = self.annotations()
        self.expect(";")
        return ast.TableEntry(start, keyset, action, annotations, priority, constant)

    def _entry_priority(self) -> ast.Expression | None:
        if not (self.at("priority") and self.peek().kind == "="):
            return None
        self.advance()
        self.advance()
        priority = self._operand()
        self.expect(":", "after an entry's priority")
        return priority
