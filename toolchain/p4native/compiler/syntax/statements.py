"""Parses statements, and the declarations that may stand among them."""

from __future__ import annotations

from typing import NoReturn

from p4native.compiler import ast
from p4native.compiler.source import Position
from p4native.compiler.syntax.annotations import AnnotationParser
from p4native.compiler.syntax.cursor import IN_CONTROL, IN_PARSER, Cursor, describe
from p4native.compiler.syntax.expressions import ExpressionParser
from p4native.compiler.syntax.hints import STATEMENTS, for_type
from p4native.compiler.syntax.typerefs import TypeParser

ASSIGNMENTS = {
    "=": "",
    **{f"{op}=": op for op in ("*", "/", "%", "+", "-", "|+|", "|-|", "<<", ">>", "&", "|", "^")},
}
Item = ast.Statement | ast.Declaration
FUNCTIONS = "declare it outside of parsers and controls; in a control, use an action"
IN_STATEMENTS = IN_CONTROL | IN_PARSER


class StatementParser:
    """The part that parses statements, and the variables, constants and instances among them."""

    def __init__(
        self,
        cursor: Cursor,
        types: TypeParser,
        expressions: ExpressionParser,
        annotations: AnnotationParser,
    ) -> None:
        self.cursor = cursor
        self.types = types
        self.expressions = expressions
        self.annotations = annotations

    def block(self, annotations: tuple[ast.Annotation, ...] = ()) -> ast.Block:
        start = self.cursor.token.position
        with self.cursor.nested(), self.cursor.scope():
            items: tuple[Item, ...] = self.cursor.block(
                self.statement_or_declaration, IN_STATEMENTS
            )
        return ast.Block(start, items, annotations, self.cursor.previous.position)

    def statement_or_declaration(self) -> Item:
        annotations = self.annotations.read()
        if self.cursor.at("const"):
            return self.constant(annotations)
        if self._at_declaration():
            return self.typed_item(annotations)
        return self.statement(annotations)

    def _at_declaration(self) -> bool:
        """Whether the next tokens are a declaration. It begins with a type, unless the type begins
        `error.x` or `Type.apply(...)`."""
        if not self.types.at_type():
            return False
        return not (self.cursor.peek().kind == "." and self.cursor.token.kind != ".")

    def typed_item(self, annotations: tuple[ast.Annotation, ...]) -> Item:
        """Parses `Type name ...;`, `Type(arguments) name;` or `Type<T>.apply(...);`."""
        start = self.cursor.token.position
        self.cursor.operators = 0
        type_ref = self.types.type_ref()
        if self.cursor.at("."):
            base = ast.TypeExpression(type_ref.position, type_ref)
            return self._finish_simple(self.expressions.suffixes(base, start), start, ";")
        if self.cursor.at("("):
            return self.instantiation(type_ref, annotations)
        declaration = self.variable(type_ref, annotations)
        if self.cursor.at("("):
            self.cursor.fail("a function cannot be declared here", declaration.position, FUNCTIONS)
        self.cursor.expect(";")
        return declaration

    def variable(
        self, type_ref: ast.TypeRef, annotations: tuple[ast.Annotation, ...]
    ) -> ast.Variable:
        """Parses `name [= value]`, without the semicolon."""
        name = self.cursor.name("of a variable")
        type_ref = self.declarator_suffix(type_ref)
        value = self.expressions.root_expression() if self.cursor.accept("=") else None
        self.cursor.declare(name.text, is_type=False)
        return ast.Variable(name.position, name.text, annotations, type_ref, value)

    def declarator_suffix(self, type_ref: ast.TypeRef) -> ast.TypeRef:
        """Parses a `[size]` behind the name, as in `H stack[4]`, and returns the type with it."""
        while self.cursor.at("["):
            type_ref = self.types.stack_suffix(type_ref)
        return type_ref

    def constant(self, annotations: tuple[ast.Annotation, ...]) -> ast.Constant:
        self.cursor.expect("const")
        self.cursor.operators = 0
        type_ref = self.types.type_ref()
        name = self.cursor.name("of a constant")
        type_ref = self.declarator_suffix(type_ref)
        self.cursor.expect("=", "and the constant's value")
        value = self.expressions.root_expression()
        self.cursor.expect(";")
        self.cursor.declare(name.text, is_type=False)
        return ast.Constant(name.position, name.text, annotations, type_ref, value)

    def instantiation(
        self, type_ref: ast.TypeRef, annotations: tuple[ast.Annotation, ...]
    ) -> ast.Instantiation:
        arguments = self.expressions.arguments()
        name = self.cursor.name("of the instance")
        type_ref = self.declarator_suffix(type_ref)
        initializer = self.cursor.initializer() if self.cursor.accept("=") else None
        self.cursor.expect(";")
        self.cursor.declare(name.text, is_type=False)
        return ast.Instantiation(
            name.position, name.text, annotations, type_ref, arguments, initializer
        )

    # ---- statements proper

    def statement(self, annotations: tuple[ast.Annotation, ...] | None = None) -> ast.Statement:
        given = self.annotations.read() if annotations is None else annotations
        kind = self.cursor.token.kind
        if kind == "{":
            return self.block(given)
        if kind == "for":
            return self._for(given)
        if kind == "if":
            return self._if()
        if kind == "switch":
            return self._switch()
        if kind == "return":
            return self._return()
        if self._foreign():
            name = self.cursor.token.text
            self.cursor.fail(f"'{name}' is no statement of P4", hint=STATEMENTS[name])
        if kind == ";":
            return ast.EmptyStatement(self.cursor.advance().position)
        if kind in ("exit", "break", "continue"):
            return self._jump()
        return self._simple(";")

    def _jump(self) -> ast.Statement:
        token = self.cursor.advance()
        self.cursor.expect(";")
        if token.kind == "exit":
            return ast.Exit(token.position)
        if token.kind == "break":
            return ast.Break(token.position)
        return ast.Continue(token.position)

    def _simple(self, closer: str) -> ast.Statement:
        """Parses an assignment or call, and checks that `closer` follows. Consumes the closer only
        if it is `;`."""
        start = self.cursor.token
        self.cursor.operators = 0
        if not (
            self.cursor.at_name()
            or start.kind in (".", "(", "this", "error")
            or self.types.at_type()
        ):
            self.cursor.fail_expected("a statement")
        return self._finish_simple(self.expressions.postfix(), start.position, closer)

    def _finish_simple(
        self, left: ast.Expression, start: Position, closer: str
    ) -> ast.Assignment | ast.CallStatement:
        result: ast.Assignment | ast.CallStatement
        if self.cursor.token.kind in ASSIGNMENTS:
            operator = ASSIGNMENTS[self.cursor.advance().kind]
            right = self.expressions.root_expression()
            result = ast.Assignment(self.cursor.span(start), left, operator, right)
        elif isinstance(left, ast.Call):
            result = ast.CallStatement(left.position, left)
        else:
            self._no_statement(left)
        if closer == ";":
            self.cursor.expect(";")
        return result

    def _no_statement(self, left: ast.Expression) -> NoReturn:
        """Reports an expression that is neither called nor assigned to."""
        token = self.cursor.token
        if isinstance(left, ast.NameExpression) and self.cursor.at_name():
            message, hint = f"type '{left.name}' is not declared", for_type(left.name)
            self.cursor.fail(message, left.position, hint)
        if token.kind == ";":
            hint = "an action is called by `name();`, a table by `name.apply();`"
            self.cursor.fail("expected '=' or a call's arguments, found ';'", hint=hint)
        self.cursor.fail_expected("'=' or a call's arguments")

    def _foreign(self) -> bool:
        """Whether a statement of another language begins here, such as `while (...) {`."""
        token = self.cursor.token
        declared = any(token.text in scope for scope in self.cursor.type_names)
        return token.text in STATEMENTS and self.cursor.peek().kind in ("(", "{") and not declared

    def _return(self) -> ast.Return:
        start = self.cursor.expect("return").position
        value = None if self.cursor.at(";") else self.expressions.root_expression()
        self.cursor.expect(";")
        return ast.Return(start, value)

    def _if(self) -> ast.If:
        """Parses an `if`. A chain of `else if` is read in a loop, so that a long chain needs no
        deep recursion."""
        chain: list[tuple[Position, ast.Expression, ast.Statement]] = []
        otherwise: ast.Statement | None = None
        while True:
            start = self.cursor.expect("if").position
            if not self.cursor.at("("):
                hint = "a condition stands in parentheses: if (...) { ... }"
                self.cursor.fail(
                    f"expected '(' after 'if', found {describe(self.cursor.token)}", hint=hint
                )
            self.cursor.advance()
            condition = self.expressions.root_expression()
            self.cursor.expect(")")
            chain.append((start, condition, self._branch()))
            if len(chain) > 4000:
                self.cursor.fail("this chain of 'if' has more than 4000 branches", start)
            if not self.cursor.accept("else"):
                break
            if not self.cursor.at("if"):
                otherwise = self._branch()
                break
        for start, condition, then in reversed(chain):
            otherwise = ast.If(start, condition, then, otherwise)
        assert isinstance(otherwise, ast.If)
        return otherwise

    def _branch(self) -> ast.Statement:
        with self.cursor.nested():
            return self.statement()

    def _switch(self) -> ast.Switch:
        start = self.cursor.expect("switch").position
        self.cursor.expect("(")
        subject = self.expressions.root_expression()
        self.cursor.expect(")")
        cases = self.cursor.block(self._switch_case, IN_STATEMENTS)
        return ast.Switch(start, subject, cases)

    def _switch_case(self) -> ast.SwitchCase:
        start = self.cursor.token
        label: ast.Expression
        if self.cursor.accept("default"):
            label = ast.DefaultKeyset(start.position)
        elif start.kind == "_":
            self.cursor.fail("'_' cannot be a switch label: write 'default'")
        else:
            label = self.expressions.root_expression()
        self.cursor.expect(":", "after a switch label")
        body = self.block(self.annotations.read()) if self.cursor.at("{", "@") else None
        return ast.SwitchCase(start.position, label, body)

    def _for(self, annotations: tuple[ast.Annotation, ...]) -> ast.For | ast.ForIn:
        start = self.cursor.expect("for").position
        self.cursor.expect("(")
        with self.cursor.nested(), self.cursor.scope():
            inner = self.annotations.read()
            if self.types.at_type():
                self.cursor.operators = 0
                type_ref = self.types.type_ref()
                if self.cursor.peek().kind == "in":
                    return self._for_in(start, type_ref, inner, annotations)
                first: tuple[Item, ...] = (self.variable(type_ref, inner),)
                if self.cursor.accept(","):
                    first += self._for_items()
            elif self.cursor.at_name() and self.cursor.peek().kind == "in":
                self.cursor.fail("the loop's variable needs a type", hint="for (bit<8> i in ...)")
            else:
                first = () if self.cursor.at(";") else self._for_items()
            return self._for_rest(start, first, annotations)

    def _for_in(
        self,
        start: Position,
        type_ref: ast.TypeRef,
        inner: tuple[ast.Annotation, ...],
        annotations: tuple[ast.Annotation, ...],
    ) -> ast.ForIn:
        name = self.cursor.name("of the loop's variable")
        self.cursor.expect("in")
        collection = self.expressions.simple_keyset()
        self.cursor.expect(")")
        self.cursor.declare(name.text, is_type=False)
        variable = ast.Variable(name.position, name.text, inner, type_ref, None)
        return ast.ForIn(start, variable, collection, self.statement(), annotations)

    def _for_items(self) -> tuple[Item, ...]:
        items: list[Item] = []
        while True:
            inner = self.annotations.read()
            if self._at_declaration():
                items.append(self.variable(self.types.type_ref(), inner))
            else:
                items.append(self._simple(""))
            if not self.cursor.accept(","):
                return tuple(items)

    def _for_rest(
        self, start: Position, first: tuple[Item, ...], annotations: tuple[ast.Annotation, ...]
    ) -> ast.For:
        self.cursor.expect(";")
        condition = self.expressions.root_expression()
        self.cursor.expect(";")
        updates: list[ast.Statement] = []
        while not self.cursor.at(")"):
            updates.append(self._simple(""))
            if not self.cursor.accept(","):
                break
        self.cursor.expect(")")
        body = self.statement()
        return ast.For(start, first, condition, tuple(updates), body, annotations)
