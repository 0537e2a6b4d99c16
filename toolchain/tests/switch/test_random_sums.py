"""Random actions that add words lane by lane and keep the sums in registers: native code under
sanitizers against the interpreter. Operands and targets are aligned or not, in headers that are
valid or not, in stacks and in metadata; something else may come between a sum and its register."""

from __future__ import annotations

import random
from typing import Any

import pytest
from switch_builder import Builder, call, extract, field, hexstr, op, ref
from switch_interpreter import Interpreter
from switch_sanitized import Sanitized

CELLS, FRAMES = 3, 12
WIDTHS = (72, 96, 128, 256, 288, 512, 544, 2048)
# A cell of 2,048 bits behind a register is also behind the 64 spare bytes of its memory.
LANES = (8, 16, 32, 64)


def lane_add(bits: int, lane: int, left: Any, right: Any, upset: bool) -> Any:
    """A sum of lanes; `upset`: with one wrong bit in a mask, which makes it something else."""
    low = sum(((1 << lane - 1) - 1) << at for at in range(0, bits, lane))
    top = ((1 << bits) - 1) ^ low
    low ^= upset << bits // 2
    added = op("+", op("&", left, hexstr(low)), op("&", right, hexstr(low)))
    return op("^", added, op("&", op("^", left, right), hexstr(top)))


class Drawn:
    """A program of words of `bits` bits."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.bits = WIDTHS[seed % len(WIDTHS)]
        self.builder = b = Builder(x=self.bits, index=8, y=self.bits, apart=5, z=self.bits)
        self.fields = [field("m", name) for name in "xyz"]
        self.indices = [field("m", "index")]
        for name in ("h", "g", "absent"):
            self.header(name, rng.choice((0, 0, 3)))
        b.header_type("s_t", [["w", self.bits]])
        b.stack("s", "s_t", 2)
        self.fields += [field(f"s[{at}]", "w") for at in range(2)]
        b.register("kept", self.bits, CELLS)
        b.register("other", self.bits, CELLS)
        b.register("wider", self.bits + 8, CELLS)
        steps = [extract("h"), extract("g"), *[call("extract", ref("stack", "s"))] * 2]
        b.state("start", steps)
        steps = [step for _ in range(12) for step in self.steps()]
        out = call("assign", field("standard_metadata", "egress_spec"), hexstr(1))
        b.run("t", b.action("a", [*steps, out]))

    def header(self, name: str, away: int) -> None:
        """Two words, which begin `away` bits after a byte's first, and a narrow field."""
        fields = [["narrow", 8 + away], ["v", self.bits], ["w", self.bits], ["rest", 8 - away]]
        if name == "g":
            fields[2] = ["w", self.bits, False, True]  # saturating
        self.builder.packet_header(name, fields)
        self.fields += [field(name, word) for word in "vw"]
        self.indices.append(field(name, "rest"))

    def word(self) -> Any:
        return self.rng.choice(self.fields)

    def register(self) -> Any:
        return ref("register_array", self.rng.choice(("kept", "kept", "other", "wider")))

    def index(self) -> Any:
        choices = [hexstr(self.rng.randrange(CELLS + 1)), *self.indices, self.word()]
        return self.rng.choice([*choices, op("&", self.word(), hexstr(3))])

    def sum(self, target: Any) -> Any:
        lane = self.rng.choice([lane for lane in LANES if self.bits % lane == 0])
        operands = [self.word(), self.rng.choice((self.word(), target))]
        self.rng.shuffle(operands)
        value = lane_add(self.bits, lane, *operands, self.rng.random() < 0.1)
        return call("assign", target, {"type": "expression", "value": value})

    def between(self) -> Any:
        """What may come between a sum and the write of it."""
        rng = self.rng
        narrow = {"type": "expression", "value": op("&", self.word(), hexstr(3))}
        header = ref("header", rng.choice(("h", "g", "absent")))
        return rng.choice(
            [
                call("assign", rng.choice(self.indices), narrow),
                call("assign", self.word(), {"type": "expression", "value": self.word()}),
                call("register_read", self.word(), self.register(), self.index()),
                call(rng.choice(("add_header", "remove_header")), header),
                call("push", ref("header_stack", "s"), hexstr(1)),
            ]
        )

    def steps(self) -> list[Any]:
        rng, target = self.rng, self.word()
        written = target if rng.random() < 0.8 else self.word()
        steps = [call("register_read", self.word(), self.register(), self.index())]
        steps += [self.sum(target)] + ([self.between()] if rng.random() < 0.3 else [])
        steps.append(call("register_write", self.register(), self.index(), written))
        return steps[rng.randrange(2) :]

    def frames(self) -> list[bytes]:
        size = 2 * (2 * self.bits // 8 + 2) + 2 * self.bits // 8
        made = [self.rng.randbytes(size) for _ in range(FRAMES)]
        sparse = [bytes(x & self.rng.choice((0, 1, 3, 128, 255)) for x in data) for data in made]
        return [*made, *sparse, b"\xff" * size]


@pytest.mark.parametrize("seed", range(10))
def test_programs_equal_the_interpreter(seed: int) -> None:
    drawn = Drawn(seed)
    frames = drawn.frames()
    native, model = Sanitized(drawn.builder.json()), Interpreter(drawn.builder.document)
    cells = [(name, at) for name in ("kept", "other", "wider") for at in range(CELLS)]
    for now, frame in enumerate(frames):
        native.process(1, frame, now)
        for name, at in cells:
            native.register_read(name, at)
    answers = iter(native.finish())
    for now, frame in enumerate(frames):
        assert next(answers) == model.process(1, frame, now), now
        for name, at in cells:
            assert next(answers) == model.registers[name][at], (now, name, at)
