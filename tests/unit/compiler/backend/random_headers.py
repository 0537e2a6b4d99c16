"""Random code on whole headers with its meaning: validity, copies, stacks, swaps by reference."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

# A header's two fields, or None where it is invalid.
Header = tuple[int, int] | None
State = dict[str, Header]
NAMES = ("hdr.x", "hdr.y", "hdr.s[0]", "hdr.s[1]", "hdr.s[2]", "local")
PARSED = NAMES[:5]
TYPES = "header p_h { bit<8> u; bit<8> v; } struct box_t { p_h inside; bit<8> n; }"
HEADERS = "p_h x; p_h y; p_h[3] s;"
TOP = """
void swap(inout p_h one, inout p_h two) { p_h kept = one; one = two; two = kept; }
bool bump(inout p_h one) {
    if (!one.isValid()) { return false; }
    one.u = one.u + 1;
    return true;
}
void fill(out p_h one, in bit<8> u) { one.setValid(); one.u = u; one.v = 7; }
"""
# hdr.h.a says which headers follow, hdr.h.b gets which are valid at the end
PARSER = """
    state start { packet.extract(hdr.h); transition select(hdr.h.a[0:0]) { 1: px; default: ny; } }
    state px { packet.extract(hdr.x); transition ny; }
    state ny { transition select(hdr.h.a[1:1]) { 1: py; default: ns; } }
    state py { packet.extract(hdr.y); transition ns; }
    state ns { transition select(hdr.h.a[3:2]) { 0: accept; default: ps; } }
    state ps { packet.extract(hdr.s.next); hdr.h.c = hdr.h.c + 1;
        transition select(hdr.h.c[1:0] ^ hdr.h.a[3:2]) { 0: accept; default: ps; } }
"""


@dataclass
class Step:
    text: str
    run: Callable[[State], None]


class HeaderGenerator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def block(self, size: int, depth: int = 2) -> Step:
        steps = [self.step(depth) for _ in range(size)]

        def run(state: State) -> None:
            for step in steps:
                step.run(state)

        return Step("\n".join(step.text for step in steps), run)

    def step(self, depth: int) -> Step:
        kinds = [
            self._valid,
            self._invalid,
            self._copy,
            self._copy,
            self._literal,
            self._stack,
            self._swap,
            self._bump,
            self._fill,
            self._box,
        ]
        if depth > 0:
            kinds += [self._if, self._if]
        return self.random.choice(kinds)(depth - 1)

    def _name(self) -> str:
        return self.random.choice(NAMES)

    def _valid(self, depth: int) -> Step:
        name, number = self._name(), self.random.randrange(256)

        def run(state: State) -> None:
            state[name] = (number, 3)

        return Step(f"{name}.setValid(); {name}.u = {number}; {name}.v = 3;", run)

    def _invalid(self, depth: int) -> Step:
        name = self._name()
        return Step(f"{name}.setInvalid();", lambda state: state.update({name: None}))

    def _copy(self, depth: int) -> Step:
        to, source = self._name(), self._name()
        return Step(f"{to} = {source};", lambda state: state.update({to: state[source]}))

    def _literal(self, depth: int) -> Step:
        """Fields of the header itself may be read while it is written."""
        name = self._name()

        def run(state: State) -> None:
            held = state[name]
            state[name] = (9, 1) if held is None else (held[1], held[0])

        return Step(
            f"if ({name}.isValid()) {{ {name} = {{ {name}.v, {name}.u }}; }} "
            f"else {{ {name} = {{ 9, 1 }}; }}",
            run,
        )

    def _stack(self, depth: int) -> Step:
        push, count = self.random.random() < 0.5, self.random.choice([1, 2])

        def run(state: State) -> None:
            items = [state[f"hdr.s[{i}]"] for i in range(3)]
            empty: list[Header] = [None] * count
            items = (empty + items)[:3] if push else (items + empty)[count:]
            state.update({f"hdr.s[{i}]": items[i] for i in range(3)})

        return Step(f"hdr.s.{'push' if push else 'pop'}_front({count});", run)

    def _swap(self, depth: int) -> Step:
        one, two = self._name(), self._name()

        def run(state: State) -> None:
            first, second = state[one], state[two]
            state[one], state[two] = second, first

        return Step(f"swap({one}, {two});", run)

    def _bump(self, depth: int) -> Step:
        name, other = self._name(), self._name()

        def run(state: State) -> None:
            held = state[name]
            if held is not None:
                state[name] = ((held[0] + 1) % 256, held[1])
                state[other] = None

        return Step(f"if (bump({name})) {{ {other}.setInvalid(); }}", run)

    def _fill(self, depth: int) -> Step:
        name, number = self._name(), self.random.randrange(256)
        return Step(f"fill({name}, {number});", lambda state: state.update({name: (number, 7)}))

    def _box(self, depth: int) -> Step:
        source, to = self._name(), self._name()
        return Step(
            f"{{ box_t box = {{ {source}, 4 }}; box_t other = box; {to} = other.inside; }}",
            lambda state: state.update({to: state[source]}),
        )

    def _if(self, depth: int) -> Step:
        one, two = self._name(), self._name()
        then, other = self.block(2, depth), self.block(1, depth)
        text, test = self.random.choice(
            [
                (f"{one} == {two}", lambda state: state[one] == state[two]),
                (
                    f"{one}.isValid() || !{two}.isValid()",
                    lambda state: state[one] is not None or state[two] is None,
                ),
            ]
        )

        def run(state: State) -> None:
            (then if test(state) else other).run(state)

        return Step(f"if ({text}) {{\n{then.text}\n}} else {{\n{other.text}\n}}", run)


def apply_text(step: Step) -> str:
    flags = " ".join(
        f"if ({name}.isValid()) {{ hdr.h.b[{i}:{i}] = 1; }}" for i, name in enumerate(NAMES)
    )
    return f"p_h local; std.egress_spec = 1; hdr.h.b = 0;\n{step.text}\n{flags}"


def random_packet(source: random.Random) -> tuple[bytes, State]:
    state: State = dict.fromkeys(NAMES)
    count = source.randrange(4)
    present = [n for n in NAMES[:2] if source.random() < 0.5]
    present += [f"hdr.s[{i}]" for i in range(count)]
    body = b""
    for name in present:
        held = (source.randrange(4), source.randrange(4))
        state[name] = held
        body += bytes(held)
    flags = ("hdr.x" in present) | ("hdr.y" in present) << 1 | count << 2
    return bytes([flags, 0, 0, 0]) + body, state


def expected(flags: int, count: int, state: State) -> bytes:
    valid = sum((state[name] is not None) << i for i, name in enumerate(NAMES))
    body = b"".join(bytes(state[name] or ()) for name in PARSED)
    return bytes([flags, valid, 0, count]) + body
