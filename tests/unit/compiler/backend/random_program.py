"""Random straight-line P4 with its meaning: every construct is text and a Python function at once.

The functions follow the language specification (fixed-width wrap-around, signed and unsigned,
copy-in copy-out), not the compiler: a packet's fields go in, what they have to be comes out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Env = dict[str, int]
Evaluate = Callable[[Env], int]
Run = Callable[[Env], None]
MAX_WIDTH = 80


@dataclass(frozen=True)
class Bits:
    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"

    def wrap(self, value: int) -> int:
        value %= 1 << self.width
        return value - (1 << self.width) if self.signed and value >> (self.width - 1) else value

    def clamp(self, value: int) -> int:
        low = -(1 << (self.width - 1)) if self.signed else 0
        return max(low, min(value, low + (1 << self.width) - 1))


@dataclass
class Expr:
    text: str
    value: Evaluate


@dataclass
class Code:
    text: str
    run: Run


FIELDS = {
    "a": Bits(8),
    "b": Bits(8),
    "c": Bits(16),
    "d": Bits(3),
    "e": Bits(13),
    "f": Bits(8, True),
    "g": Bits(16, True),
    "i": Bits(64),
    "j": Bits(72),
    "k": Bits(5, True),
    "l": Bits(1),
    "m": Bits(2),
}
HEADER_BITS = sum(t.width for t in FIELDS.values())
assert HEADER_BITS % 8 == 0, HEADER_BITS


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.variables = {f"hdr.h.{name}": shape for name, shape in FIELDS.items()}
        self.counter = 0

    # -------------------------------------------------------------- expressions

    def expr(self, shape: Bits, depth: int) -> Expr:
        choices = [self._leaf]
        if depth > 0:
            choices = [
                self._binary,
                self._binary,
                self._shift,
                self._unary,
                self._choice,
                self._cast,
                self._saturating,
                self._leaf,
            ]
            if not shape.signed:
                choices += [self._concat, self._slice, self._divide]
        return self.random.choice(choices)(shape, depth - 1)

    def _leaf(self, shape: Bits, depth: int) -> Expr:
        fitting = [name for name, other in self.variables.items() if other == shape]
        if fitting and self.random.random() < 0.75:
            name = self.random.choice(fitting)
            return Expr(name, lambda env: env[name])
        number = shape.wrap(self.random.choice([0, 1, -1, self.random.getrandbits(shape.width)]))
        sign = "s" if shape.signed else "w"
        if shape.signed and number < 0:
            positive = Bits(shape.width).wrap(number)
            return Expr(f"(({shape})({Bits(shape.width)}){positive})", lambda env: number)
        return Expr(f"{shape.width}{sign}{number}", lambda env: number)

    def _binary(self, shape: Bits, depth: int) -> Expr:
        operator = self.random.choice("+-*&|^")
        compute = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "&": lambda a, b: a & b,
            "|": lambda a, b: a | b,
            "^": lambda a, b: a ^ b,
        }[operator]
        left, right = self.expr(shape, depth), self.expr(shape, depth)
        return Expr(
            f"({left.text} {operator} {right.text})",
            lambda env: shape.wrap(compute(left.value(env), right.value(env))),
        )

    def _divide(self, shape: Bits, depth: int) -> Expr:
        if shape.width < 2:
            return self._leaf(shape, depth)
        left, by = self.expr(shape, depth), self.random.randrange(1, 1 << min(shape.width, 12))
        if self.random.random() < 0.5:
            return Expr(f"({left.text} / {by})", lambda env: left.value(env) // by)
        return Expr(f"({left.text} % {by})", lambda env: left.value(env) % by)

    def _shift(self, shape: Bits, depth: int) -> Expr:
        left = self.expr(shape, depth)
        if self.random.random() < 0.5:
            count_number = self.random.randrange(0, shape.width + 3)
            count = Expr(str(count_number), lambda env: count_number)
        else:
            count = self.expr(self.random.choice([Bits(8), Bits(3), Bits(64)]), depth)
        if self.random.random() < 0.5:
            return Expr(
                f"({left.text} << {count.text})",
                lambda env: shape.wrap(left.value(env) << min(count.value(env), 200)),
            )
        return Expr(
            f"({left.text} >> {count.text})",
            lambda env: left.value(env) >> min(count.value(env), 200),
        )

    def _unary(self, shape: Bits, depth: int) -> Expr:
        operand = self.expr(shape, depth)
        if self.random.random() < 0.5:
            return Expr(f"(-{operand.text})", lambda env: shape.wrap(-operand.value(env)))
        return Expr(f"(~{operand.text})", lambda env: shape.wrap(~operand.value(env)))

    def _saturating(self, shape: Bits, depth: int) -> Expr:
        if shape.width < 2:
            return self._leaf(shape, depth)
        left, right = self.expr(shape, depth), self.expr(shape, depth)
        if self.random.random() < 0.5:
            return Expr(
                f"({left.text} |+| {right.text})",
                lambda env: shape.clamp(left.value(env) + right.value(env)),
            )
        return Expr(
            f"({left.text} |-| {right.text})",
            lambda env: shape.clamp(left.value(env) - right.value(env)),
        )

    def _choice(self, shape: Bits, depth: int) -> Expr:
        condition = self.condition(depth)
        then, other = self.expr(shape, depth), self.expr(shape, depth)
        return Expr(
            f"({condition.text} ? {then.text} : {other.text})",
            lambda env: then.value(env) if condition.value(env) else other.value(env),
        )

    def _cast(self, shape: Bits, depth: int) -> Expr:
        if self.random.random() < 0.5:
            source = Bits(self.random.randrange(2, MAX_WIDTH), shape.signed)
        elif shape.width > 1:
            source = Bits(shape.width, not shape.signed)
        else:
            condition = self.condition(depth)
            return Expr(f"((bit<1>)({condition.text}))", lambda env: int(condition.value(env)))
        operand = self.expr(source, depth)
        return Expr(f"(({shape}){operand.text})", lambda env: shape.wrap(operand.value(env)))

    def _concat(self, shape: Bits, depth: int) -> Expr:
        if shape.width < 2:
            return self._leaf(shape, depth)
        low = self.random.randrange(1, shape.width)
        left, right = self.expr(Bits(shape.width - low), depth), self.expr(Bits(low), depth)
        return Expr(
            f"({left.text} ++ {right.text})",
            lambda env: left.value(env) << low | right.value(env),
        )

    def _slice(self, shape: Bits, depth: int) -> Expr:
        wider = [n for n, t in self.variables.items() if t.width >= shape.width]
        if not wider:
            return self._leaf(shape, depth)
        name = self.random.choice(wider)
        low = self.random.randrange(0, self.variables[name].width - shape.width + 1)
        high = low + shape.width - 1
        return Expr(f"{name}[{high}:{low}]", lambda env: shape.wrap(env[name] >> low))

    def condition(self, depth: int) -> Expr:
        if depth > 0 and self.random.random() < 0.4:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            if self.random.random() < 0.5:
                return Expr(
                    f"({left.text} && {right.text})",
                    lambda env: bool(left.value(env) and right.value(env)),
                )
            return Expr(
                f"(!{left.text} || {right.text})",
                lambda env: bool(not left.value(env) or right.value(env)),
            )
        operator = self.random.choice(["==", "!=", "<", "<=", ">", ">="])
        shape = self.random.choice(list(self.variables.values()))
        left, right = self.expr(shape, depth - 1), self.expr(shape, depth - 1)
        compare = {
            "==": lambda a, b: a == b,
            "!=": lambda a, b: a != b,
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
        }[operator]
        return Expr(
            f"({left.text} {operator} {right.text})",
            lambda env: compare(left.value(env), right.value(env)),
        )

    # --------------------------------------------------------------- statements

    def block(self, size: int, depth: int) -> Code:
        known = dict(self.variables)
        parts = [self.statement(depth) for _ in range(size)]
        self.variables = known

        def run(env: Env) -> None:
            for part in parts:
                part.run(env)

        return Code("\n".join(part.text for part in parts), run)

    def statement(self, depth: int) -> Code:
        choices = [self._assign, self._assign, self._assign_slice, self._declare]
        if depth > 0:
            choices += [self._if, self._if, self._switch, self._call]
        return self.random.choice(choices)(depth - 1)

    def _assign(self, depth: int) -> Code:
        name = self.random.choice(list(self.variables))
        source = self.expr(self.variables[name], 3)

        def run(env: Env) -> None:
            env[name] = source.value(env)

        return Code(f"{name} = {source.text};", run)

    def _assign_slice(self, depth: int) -> Code:
        name = self.random.choice(list(self.variables))
        shape = self.variables[name]
        low = self.random.randrange(shape.width)
        high = self.random.randrange(low, shape.width)
        part = Bits(high - low + 1)
        source = self.expr(part, 2)
        hole = ((1 << part.width) - 1) << low

        def run(env: Env) -> None:
            env[name] = shape.wrap(env[name] & ~hole | source.value(env) << low)

        return Code(f"{name}[{high}:{low}] = {source.text};", run)

    def _declare(self, depth: int) -> Code:
        self.counter += 1
        name = f"v{self.counter}"
        shape = self.random.choice([Bits(8), Bits(16), Bits(40), Bits(9, True), Bits(8, True)])
        source = self.expr(shape, 3)
        self.variables[name] = shape

        def run(env: Env) -> None:
            env[name] = source.value(env)

        return Code(f"{shape} {name} = {source.text};", run)

    def _if(self, depth: int) -> Code:
        condition = self.condition(2)
        then, other = self.block(2, depth), self.block(2, depth)

        def run(env: Env) -> None:
            (then if condition.value(env) else other).run(env)

        return Code(f"if ({condition.text}) {{\n{then.text}\n}} else {{\n{other.text}\n}}", run)

    def _switch(self, depth: int) -> Code:
        subject = self.expr(Bits(3), 2)
        first, second, other = (self.block(1, depth) for _ in range(3))

        def run(env: Env) -> None:
            value = subject.value(env)
            (first if value in (1, 2) else second if value == 5 else other).run(env)

        return Code(
            f"switch ({subject.text}) {{ 1: 2: {{ {first.text} }} 5: {{ {second.text} }} "
            f"default: {{ {other.text} }} }}",
            run,
        )

    def _call(self, depth: int) -> Code:
        """`mix` (below): copy-in, copy-out, an early return, and arguments that may overlap."""
        inout = self.random.choice([n for n, t in self.variables.items() if t == Bits(8)])
        out = self.random.choice([n for n, t in self.variables.items() if t == Bits(16)])
        given = self.expr(Bits(8), 2)
        target = self.random.choice([n for n, t in self.variables.items() if t == Bits(8)])

        def run(env: Env) -> None:
            x, z = env[inout], given.value(env)
            x = (x + z) % 256
            if x > 100:
                y, result = x << 8 | z, z
            else:
                x = x ^ 0x55
                y, result = z, x
            env[inout] = x
            env[out] = y
            env[target] = result

        return Code(f"{target} = mix({inout}, {out}, {given.text});", run)


MIX = """
bit<8> mix(inout bit<8> x, out bit<16> y, in bit<8> z) {
    x = x + z;
    if (x > 100) {
        y = x ++ z;
        return z;
    }
    x = x ^ 0x55;
    y = (bit<16>)z;
    return x;
}
"""


def header_text() -> str:
    return " ".join(f"{shape} {name};" for name, shape in FIELDS.items())


def encode(env: Env) -> bytes:
    bits = 0
    for name, shape in FIELDS.items():
        bits = bits << shape.width | Bits(shape.width).wrap(env[f"hdr.h.{name}"])
    return bits.to_bytes(HEADER_BITS // 8, "big")


def random_fields(source: random.Random) -> Env:
    env: Env = {}
    for name, shape in FIELDS.items():
        value = source.choice([0, 1, -1, source.getrandbits(shape.width)])
        env[f"hdr.h.{name}"] = shape.wrap(value)
    return env
