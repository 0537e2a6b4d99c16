"""Random expressions of a given type."""

from __future__ import annotations

from collections.abc import Callable

from p4native.verification.random_programs.kinds import (
    BOOL,
    CODE,
    Bits,
    Bool,
    Choice,
    Function,
    Kind,
    Scope,
    Source,
    Struct,
)

SHIFT_COUNTS = (Bits(3), Bits(8), Bits(8))


class Expressions:
    """Draws expressions and returns them as text. Every operand is in parentheses.

    refused: whether to draw constructs that p4c refuses for BMv2: divisions of numbers known only
    at run time, and loops over a range.
    """

    def __init__(self, source: Source, widths: tuple[int, ...], refused: bool) -> None:
        self.refused = refused
        self.source = source
        self.random = source.random
        self.widths = widths

    def of(self, kind: Kind, scope: Scope, depth: int) -> str:
        if isinstance(kind, Bits):
            return self.number(kind, scope, depth)
        if isinstance(kind, Bool):
            return self.condition(scope, depth)
        if isinstance(kind, Choice):
            return self.member(kind, scope, depth)
        return self.struct(kind, scope, depth)

    def struct(self, kind: Struct, scope: Scope, depth: int) -> str:
        """Draws an expression of a struct type: a variable, a list of values, or a list of named
        values."""
        known = [] if kind.header else scope.of(kind)
        if known and self.source.chance(0.6):
            return self.random.choice(known)
        parts = [(n, self.of(k, scope, depth - 1)) for n, k in kind.members]
        if self.source.chance(0.5):
            return f"(({kind}){{ {', '.join(f'{n} = {text}' for n, text in parts)} }})"
        return f"(({kind}){{ {', '.join(text for _, text in parts)} }})"

    def member(self, kind: Choice, scope: Scope, depth: int) -> str:
        known = scope.of(kind)
        if known and self.source.chance(0.5):
            return self.random.choice(known)
        if kind == CODE and depth > 0 and self.source.chance(0.3):
            return f"(({kind})({self.number(Bits(8), scope, depth - 1)}))"
        return f"{kind}.{self.random.choice(kind.members)}"

    # ------------------------------------------------------------------ numbers

    def number(self, shape: Bits, scope: Scope, depth: int) -> str:
        makers: list[Callable[[Bits, Scope, int], str]] = [self._leaf]
        if depth > 0:
            makers += [self._binary] * 3
            makers += [self._unary, self._shift, self._choice, self._cast, self._call, self._leaf]
            if shape.width > 1:
                makers.append(self._saturating)
            if not shape.signed:
                makers += [self._slice, self._slice_of]
                makers += [self._divide] * self.refused
                if shape.width > 1:
                    makers.append(self._concatenation)
        return self.random.choice(makers)(shape, scope, depth - 1)

    def literal(self, shape: Bits) -> str:
        value = self.source.number(shape.width)
        if shape.signed and value >> (shape.width - 1):
            return f"(({shape}){shape.width}w{value})"
        sign = "s" if shape.signed else "w"
        return f"{shape.width}{sign}{value if self.source.chance(0.5) else hex(value)}"

    def _leaf(self, shape: Bits, scope: Scope, depth: int) -> str:
        known = scope.of(shape)
        if known and self.source.chance(0.75):
            return self.random.choice(known)
        others = scope.numbers(unsigned=not shape.signed)
        others = [(n, k) for n, k in others if k.signed == shape.signed]
        if others and self.source.chance(0.5):
            return f"(({shape}){self.random.choice(others)[0]})"
        return self.literal(shape)

    def _binary(self, shape: Bits, scope: Scope, depth: int) -> str:
        left, right = self.number(shape, scope, depth), self.number(shape, scope, depth)
        return f"({left} {self.random.choice('+-*&|^')} {right})"

    def _saturating(self, shape: Bits, scope: Scope, depth: int) -> str:
        left, right = self.number(shape, scope, depth), self.number(shape, scope, depth)
        return f"({left} {self.random.choice(['|+|', '|-|'])} {right})"

    def _divide(self, shape: Bits, scope: Scope, depth: int) -> str:
        left, operator = self.number(shape, scope, depth), self.random.choice("/%")
        if self.source.chance(0.5):
            return f"({left} {operator} {shape.width}w{max(1, self.source.number(shape.width))})"
        return f"({left} {operator} ({self.number(shape, scope, depth)} | {shape.width}w1))"

    def _unary(self, shape: Bits, scope: Scope, depth: int) -> str:
        return f"({self.random.choice('-~')}{self.number(shape, scope, depth)})"

    def _shift(self, shape: Bits, scope: Scope, depth: int) -> str:
        left, operator = self.number(shape, scope, depth), self.random.choice(["<<", ">>"])
        if self.source.chance(0.5):
            return f"({left} {operator} {self.random.randrange(shape.width + 2)})"
        count = self.number(self.random.choice(SHIFT_COUNTS), scope, depth)
        return f"({left} {operator} {count})"

    def _choice(self, shape: Bits, scope: Scope, depth: int) -> str:
        condition = self.condition(scope, depth)
        left, right = self.number(shape, scope, depth), self.number(shape, scope, depth)
        return f"({condition} ? {left} : {right})"

    def _cast(self, shape: Bits, scope: Scope, depth: int) -> str:
        if shape == Bits(1) and self.source.chance(0.5):
            return f"((bit<1>)({self.condition(scope, depth)}))"
        if shape == Bits(8) and self.source.chance(0.3):
            return f"((bit<8>){self.member(CODE, scope, depth)})"
        if self.source.chance(0.5):
            inner = Bits(shape.width, not shape.signed)
        else:
            inner = Bits(self.random.choice(self.widths), shape.signed)
        return f"(({shape}){self.number(inner, scope, depth)})"

    def _call(self, shape: Bits, scope: Scope, depth: int) -> str:
        usable = [f for f in scope.functions if f.result == shape]
        if not usable:
            return self._leaf(shape, scope, depth)
        return self.call(self.random.choice(usable), scope, depth) or self._leaf(
            shape, scope, depth
        )

    def call(self, function: Function, scope: Scope, depth: int) -> str | None:
        """Draws a call of a function, in which several arguments may be the same variable. Returns
        None if nothing in scope can be assigned for one of the outputs."""
        arguments = []
        for direction, kind in function.parameters:
            text = self.argument(direction, kind, scope, depth, slices=True)
            if text is None:
                return None
            arguments.append(text)
        return f"{function.name}({', '.join(arguments)})"

    def argument(
        self, direction: str, kind: Kind, scope: Scope, depth: int, slices: bool = False
    ) -> str | None:
        """Draws an argument. slices: whether an output may be assigned to a part of a number. At an
        `exit`, p4c does not copy outputs to such parts."""
        if direction == "in":
            return self.of(kind, scope, depth)
        places = scope.of(kind, writable=True)
        if slices and isinstance(kind, Bits) and not kind.signed and self.source.chance(0.2):
            wider = [
                (n, k)
                for n, k in scope.numbers(writable=True, unsigned=True)
                if k.width > kind.width
            ]
            if wider:
                name, wide = self.random.choice(wider)
                low = self.random.randrange(wide.width - kind.width + 1)
                places = [f"{name}[{low + kind.width - 1}:{low}]"]
        return self.random.choice(places) if places else None

    def _concatenation(self, shape: Bits, scope: Scope, depth: int) -> str:
        low = self.random.randrange(1, shape.width)
        left = self.number(Bits(shape.width - low), scope, depth)
        return f"({left} ++ {self.number(Bits(low), scope, depth)})"

    def _slice(self, shape: Bits, scope: Scope, depth: int) -> str:
        wider = [(n, k) for n, k in scope.numbers() if k.width >= shape.width]
        if not wider:
            return self._leaf(shape, scope, depth)
        name, wide = self.random.choice(wider)
        low = self.random.randrange(wide.width - shape.width + 1)
        return f"{name}[{low + shape.width - 1}:{low}]"

    def _slice_of(self, shape: Bits, scope: Scope, depth: int) -> str:
        """Draws a slice of a computed value."""
        wide = shape.width + self.random.randrange(9)
        low = self.random.randrange(wide - shape.width + 1)
        names = scope.numbers()
        if not names:
            return self._leaf(shape, scope, depth)
        name, kind = self.random.choice(names)
        cast = f"((bit<{wide}>){name})" if not kind.signed else None
        if cast is None:
            return self._slice(shape, scope, depth)
        inner = self.number(Bits(wide), scope, depth - 1)
        return f"({cast} ^ {inner})[{low + shape.width - 1}:{low}]"

    # --------------------------------------------------------------- conditions

    def condition(self, scope: Scope, depth: int) -> str:
        if depth <= 0:
            return self._simple_condition(scope)
        which = self.random.random()
        if which < 0.3:
            left, right = self.condition(scope, depth - 1), self.condition(scope, depth - 1)
            return f"({left} {self.random.choice(['&&', '||'])} {right})"
        if which < 0.4:
            return f"(!{self.condition(scope, depth - 1)})"
        known = scope.of(BOOL)
        if which < 0.45 and known:  # of anything larger p4c loses the type
            left, right = self.random.choice(known), self.random.choice([*known, "true"])
            return f"({left} {self.random.choice(['==', '!='])} {right})"
        calls = [f for f in scope.functions if f.result == BOOL]
        if which < 0.55 and calls:
            called = self.call(self.random.choice(calls), scope, depth - 1)
            if called:
                return called
        return self.comparison(scope, depth - 1)

    def _simple_condition(self, scope: Scope) -> str:
        known = scope.of(BOOL)
        if known and self.source.chance(0.4):
            return self.random.choice(known)
        if scope.headers and self.source.chance(0.4):
            return f"{self.random.choice(scope.headers).text}.isValid()"
        return self.comparison(scope, 0)

    def comparison(self, scope: Scope, depth: int) -> str:
        """Draws a comparison of numbers, enums, structs or headers."""
        whole = [v for v in (*scope.variables, *scope.headers) if isinstance(v.kind, Struct)]
        if whole and self.source.chance(0.06):
            one = self.random.choice(whole)
            other = self.random.choice([v for v in whole if v.kind == one.kind])
            return f"({one.text} {self.random.choice(['==', '!='])} {other.text})"
        scalar = self.random.choice(scope.scalars()).kind if scope.scalars() else Bits(8)
        if not isinstance(scalar, Bits):
            operator = self.random.choice(["==", "!="])
        else:
            operator = self.random.choice(["==", "==", "!=", "<", "<=", ">", ">="])
        left, right = self.of(scalar, scope, depth), self.of(scalar, scope, depth)
        return f"({left} {operator} {right})"
