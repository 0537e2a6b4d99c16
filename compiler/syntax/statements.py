"""Parsing statements, and the declarations that may stand among them."""

from __future__ import annotations

from agglab.compiler import ast
from agglab.compiler.source import Position
from agglab.compiler.syntax.annotations import AnnotationParser
from agglab.compiler.syntax.cursor import describe

ASSIGNMENTS = {
    "=": "",
    **{f"{op}=": op for op in ("*", "/", "%", "+", "-", "|+|", "|-|", "<<", ">>", "&", "|", "^")},
}
Item = ast.Statement | ast.Declaration


class StatementParser(AnnotationParser):
    def block(self, annotations: tuple[ast.Annotation, ...] = ()) -> ast.Block:
        start = self.expect("{").position
        with self.nested(), self.scope():
            items: tuple[Item, ...] = self.until("}", self.statement_or_declaration)
        return ast.Block(start, items, annotations, self.previous.position)

    def statement_or_declaration(self) -> Item:
        annotations = self.annotations()
        if self.at("const"):
            return self.constant(annotations)
        if self._at_declaration():
            return self._typed_item(annotations)
        return self.statement(annotations)

    def _at_declaration(self) -> bool:
        """A type that is not `error.x` or the base of `Type.apply(...)`."""
        if not self.at_type():
            return False
        return not (self.peek().kind == "." and self.token.kind != ".")

    def _typed_item(self, annotations: tuple[ast.Annotation, ...]) -> Item:
        """`Type name ...;`, `Type(arguments) name;`, `Type<T>.apply(...);`."""
        start = self.token.position
        self.operators = 0
        type_ref = self.type_ref()
        if self.at("."):
            base = ast.TypeExpression(type_ref.position, type_ref)
            return self._finish_simple(self._suffixes(base, start), start, ";")
        if self.at("("):
            return self.instantiation(type_ref, annotations)
        declaration = self.variable(type_ref, annotations)
        self.expect(";")
        return declaration

    def variable(
        self, type_ref: ast.TypeRef, annotations: tuple[ast.Annotation, ...]
    ) -> ast.Variable:
        """`name [= value]`, without the semicolon."""
        name = self.name("of a variable")
        type_ref = self.declarator_suffix(type_ref)
        value = self.root_expression() if self.accept("=") else None
        self.declare(name.text, is_type=False)
        return ast.Variable(name.position, name.text, annotations, type_ref, value)

    def declarator_suffix(self, type_ref: ast.TypeRef) -> ast.TypeRef:
        """`[size]` behind the name, as in `H stack[4]`."""
        while self.at("["):
            type_ref = self.stack_suffix(type_ref)
        return type_ref

    def constant(self, annotations: tuple[ast.Annotation, ...]) -> ast.Constant:
        self.expect("const")
        self.operators = 0
        type_ref = self.type_ref()
        name = self.name("of a constant")
        type_ref = self.declarator_suffix(type_ref)
        self.expect("=", "and the constant's value")
        value = self.root_expression()
        self.expect(";")
        self.declare(name.text, is_type=False)
        return ast.Constant(name.position, name.text, annotations, type_ref, value)

    def instantiation(
        self, type_ref: ast.TypeRef, annotations: tuple[ast.Annotation, ...]
    ) -> ast.Instantiation:
        arguments = self.arguments()
        name = self.name("of the instance")
        type_ref = self.declarator_suffix(type_ref)
        initializer = self.initializer() if self.accept("=") else None
        self.expect(";")
        self.declare(name.text, is_type=False)
        return ast.Instantiation(
            name.position, name.text, annotations, type_ref, arguments, initializer
        )

    def initializer(self) -> tuple[ast.Declaration, ...]:
        raise NotImplementedError

    # ---- statements proper

    def statement(self, annotations: tuple[ast.Annotation, ...] | None = None) -> ast.Statement:
        given = self.annotations() if annotations is None else annotations
        kind = self.token.kind
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
        if kind == ";":
            return ast.EmptyStatement(self.advance().position)
        if kind in ("exit", "break", "continue"):
            return self._jump()
        return self._simple(";")

    def _jump(self) -> ast.Statement:
        token = self.advance()
        self.expect(";")
        if token.kind == "exit":
            return ast.Exit(token.position)
        if token.kind == "break":
            return ast.Break(token.position)
        return ast.Continue(token.position)

    def _simple(self, closer: str) -> ast.Statement:
        """Assignment or call; closer is consumed if it is `;`."""
        start = self.token
        self.operators = 0
        if not (self.at_name() or start.kind in (".", "(", "this", "error") or self.at_type()):
            self._expected("a statement")
        return self._finish_simple(self.postfix(), start.position, closer)

    def _finish_simple(
        self, left: ast.Expression, start: Position, closer: str
    ) -> ast.Assignment | ast.CallStatement:
        result: ast.Assignment | ast.CallStatement
        if self.token.kind in ASSIGNMENTS:
            operator = ASSIGNMENTS[self.advance().kind]
            right = self.root_expression()
            result = ast.Assignment(self.span(start), left, operator, right)
        elif isinstance(left, ast.Call):
            result = ast.CallStatement(left.position, left)
        else:
            found = describe(self.token)
            self.fail(f"expected '=' or a call's arguments, found {found}")
        if closer == ";":
            self.expect(";")
        return result

    def _return(self) -> ast.Return:
        start = self.expect("return").position
        value = None if self.at(";") else self.root_expression()
        self.expect(";")
        return ast.Return(start, value)

    def _if(self) -> ast.If:
        """A chain of `else if` is read in a loop: it may be long without being nested."""
        chain: list[tuple[Position, ast.Expression, ast.Statement]] = []
        otherwise: ast.Statement | None = None
        while True:
            start = self.expect("if").position
            self.expect("(")
            condition = self.root_expression()
            self.expect(")")
            chain.append((start, condition, self._branch()))
            if len(chain) > 4000:
                self.fail("more than 4000 branches in one chain of if", start)
            if not self.accept("else"):
                break
            if not self.at("if"):
                otherwise = self._branch()
                break
        for start, condition, then in reversed(chain):
            otherwise = ast.If(start, condition, then, otherwise)
        assert isinstance(otherwise, ast.If)
        return otherwise

    def _branch(self) -> ast.Statement:
        with self.nested():
            return self.statement()

    def _switch(self) -> ast.Switch:
        start = self.expect("switch").position
        self.expect("(")
        subject = self.root_expression()
        self.expect(")")
        self.expect("{")
        cases = self.until("}", self._switch_case)
        return ast.Switch(start, subject, cases)

    def _switch_case(self) -> ast.SwitchCase:
        start = self.token
        label: ast.Expression
        if self.accept("default"):
            label = ast.DefaultKeyset(start.position)
        elif start.kind == "_":
            self.fail("'_' is no switch label: write 'default'")
        else:
            label = self.root_expression()
        self.expect(":", "after a switch label")
        body = self.block(self.annotations()) if self.at("{", "@") else None
        return ast.SwitchCase(start.position, label, body)

    def _for(self, annotations: tuple[ast.Annotation, ...]) -> ast.For | ast.ForIn:
        start = self.expect("for").position
        self.expect("(")
        with self.nested(), self.scope():
            inner = self.annotations()
            if self.at_type():
                self.operators = 0
                type_ref = self.type_ref()
                if self.peek().kind == "in":
                    return self._for_in(start, type_ref, inner, annotations)
                first: tuple[Item, ...] = (self.variable(type_ref, inner),)
                if self.accept(","):
                    first += self._for_items()
            elif self.at_name() and self.peek().kind == "in":
                self.fail("the loop's variable needs a type", hint="for (bit<8> i in ...)")
            else:
                first = () if self.at(";") else self._for_items()
            return self._for_rest(start, first, annotations)

    def _for_in(
        self,
        start: Position,
        type_ref: ast.TypeRef,
        inner: tuple[ast.Annotation, ...],
        annotations: tuple[ast.Annotation, ...],
    ) -> ast.ForIn:
        name = self.name("of the loop's variable")
        self.expect("in")
        collection = self.simple_keyset()
        self.expect(")")
        self.declare(name.text, is_type=False)
        variable = ast.Variable(name.position, name.text, inner, type_ref, None)
        return ast.ForIn(start, variable, collection, self.statement(), annotations)

    def _for_items(self) -> tuple[Item, ...]:
        items: list[Item] = []
        while True:
            inner = self.annotations()
            if self._at_declaration():
                items.append(self.variable(self.type_ref(), inner))
            else:
                items.append(self._simple(""))
            if not self.accept(","):
                return tuple(items)

    def _for_rest(
        self, start: Position, first: tuple[Item, ...], annotations: tuple[ast.Annotation, ...]
    ) -> ast.For:
        self.expect(";")
        condition = self.root_expression()
        self.expect(";")
        updates: list[ast.Statement] = []
        while not self.at(")"):
            updates.append(self._simple(""))
            if not self.accept(","):
                break
        self.expect(")")
        body = self.statement()
        return ast.For(start, first, condition, tuple(updates), body, annotations)
