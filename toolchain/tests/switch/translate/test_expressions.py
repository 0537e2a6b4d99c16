"""Random expressions of random widths: native code (sanitized) against the interpreter."""

from __future__ import annotations

import random
from typing import Any

import pytest
from switch_builder import Builder, call, extract, field, hexstr, op, transition
from switch_interpreter import Interpreter
from switch_sanitized import Sanitized

WIDTHS = (1, 3, 7, 8, 9, 16, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 130, 256, 300)
ARITHMETIC = ("+", "-", "*", "&", "|", "^")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
DEPTH = 4
EXPRESSIONS = 40
FRAMES = 25


class Expressions:
    """Draws expressions over the fields `in.*` of a builder."""

    def __init__(self, rng: random.Random, fields: list[tuple[str, int, bool]]) -> None:
        self.rng = rng
        self.fields = fields

    def leaf(self) -> Any:
        if self.rng.random() < 0.3:
            bits = self.rng.choice(WIDTHS)
            value = self.rng.choice([0, 1, (1 << bits) - 1, self.rng.getrandbits(bits)])
            return hexstr(-value if self.rng.random() < 0.2 else value)
        return field("in", self.rng.choice(self.fields)[0])

    def data(self, depth: int) -> Any:
        if depth == 0:
            return self.leaf()
        kind = self.rng.randrange(12)
        if kind < 5:
            return op(self.rng.choice(ARITHMETIC), self.data(depth - 1), self.data(depth - 1))
        if kind == 5:
            return op("~", None, self.data(depth - 1))
        if kind == 6:
            return self.shift(depth)
        if kind == 7:
            return self.cast(depth)
        if kind == 8:
            name = self.rng.choice(("/", "%"))
            return op(name, self.data(depth - 1), self.data(depth - 1))
        if kind == 9:
            choices = self.data(depth - 1), self.data(depth - 1)
            return op("?", *choices, cond=self.boolean(depth - 1))
        if kind == 10:
            return op("b2d", None, self.boolean(depth - 1))
        return op("-", None, self.data(depth - 1))

    def shift(self, depth: int) -> Any:
        """A left shift by a field is cut to a width, as compilers do."""
        amount = hexstr(self.rng.choice([0, 1, 7, 8, 63, 64, 65, 200]))
        if self.rng.random() < 0.4:
            amount = field("in", "f5")
        if self.rng.random() < 0.5:
            return op(">>", self.data(depth - 1), amount)
        mask = hexstr((1 << self.rng.choice(WIDTHS)) - 1)
        return op("&", op("<<", self.data(depth - 1), amount), mask)

    def cast(self, depth: int) -> Any:
        name = self.rng.choice(("two_comp_mod", "usat_cast", "sat_cast"))
        return op(name, self.data(depth - 1), hexstr(self.rng.choice(WIDTHS)))

    def boolean(self, depth: int) -> Any:
        kind = self.rng.randrange(6) if depth else 0
        if kind < 3:
            compared = self.data(max(depth - 1, 0)), self.data(max(depth - 1, 0))
            return op(self.rng.choice(COMPARISONS), *compared)
        if kind == 3:
            return op("d2b", None, self.data(depth - 1))
        if kind == 4:
            return op("not", None, self.boolean(depth - 1))
        name = self.rng.choice(("and", "or", "==", "!="))
        return op(name, self.boolean(depth - 1), self.boolean(depth - 1))


def program(rng: random.Random) -> tuple[Builder, int]:
    """A program that answers with the values of many expressions; and the input's length."""
    fields = [(f"f{i}", rng.choice(WIDTHS), rng.random() < 0.25) for i in range(12)]
    fields[5] = ("f5", 8, False)
    bits = sum(b for _, b, _ in fields)
    fields.append(("pad", 8 - bits % 8, False))
    outputs = [(f"o{i}", rng.choice(WIDTHS)) for i in range(EXPRESSIONS)]
    padding = 8 - sum(b for _, b in outputs) % 8
    builder = Builder()
    builder.packet_header("in", [[n, b, s] for n, b, s in fields], deparse=False)
    builder.packet_header("out", [[n, b] for n, b in outputs] + [["pad", padding]])
    builder.state("start", [extract("in")], [], [transition(None, 0, None)])
    draw = Expressions(rng, fields)
    steps = [call("add_header", {"type": "header", "value": "out"})]
    steps += [
        call("assign", field("out", name), {"type": "expression", "value": draw.data(DEPTH)})
        for name, _ in outputs
    ]
    builder.run("t", builder.action("a", steps))
    return builder, (bits + fields[-1][1]) // 8


def frames(rng: random.Random, length: int) -> list[bytes]:
    edges = [bytes(length), b"\xff" * length, b"\x80" + bytes(length - 1)]
    return edges + [rng.randbytes(length) for _ in range(FRAMES)]


@pytest.mark.parametrize("seed", range(6))
def test_expressions_equal_the_interpreter(seed: int) -> None:
    rng = random.Random(seed)
    builder, length = program(rng)
    native = Sanitized(builder.json())
    model = Interpreter(builder.document)
    inputs = frames(rng, length)
    for frame in inputs:
        native.process(1, frame)
    for frame, copies in zip(inputs, native.finish(), strict=True):
        assert copies == model.process(1, frame), frame.hex()
