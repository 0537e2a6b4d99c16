"""Random parsers. Their states have an order, and each state leads to a later one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from p4native.verification.random_programs.kinds import Bits, Scope, Source, Struct, Variable
from p4native.verification.random_programs.statements import Lines, Place, Statements

PARSER = Place("parser")
ASSIGNED = re.compile(r"([\w.]+)(?:\[[\d:]+\])? [-+*&|^]*= ")
RANGE_MAX = 2**32 - 1
"""The largest difference between the ends of a range, so that the range becomes at most 64
masks."""
PIECES = ("x", "y", "z", "s", "t", "union", "varbit", "advance", "ahead", "verify", "sub", "code")


class Parsers:
    """Draws one parser, over these headers: h (always extracted first), x, y, z, the stacks s and
    t, the union u, and the headers v and w of variable length. long: whether their varbits have
    thousands of bits. top: the text of sub-parsers and value sets."""

    def __init__(
        self, source: Source, statements: Statements, types: dict[str, Struct], long: bool
    ) -> None:
        self.source, self.random = source, source.random
        self.statements = statements
        self.types = types
        self.long = long
        self.top: Lines = []
        self.locals: Lines = ["value_set<bit<8>>(4) pvs;"]
        self.scope = Scope(())
        self.assigned = {"meta.a", "meta.b", "meta.n"}  # by loops and lookaheads

    def draw(self, scope: Scope) -> Lines:
        """Draws declarations and states. scope: metadata and the fields of h."""
        self.scope = scope
        pieces = [p for p in PIECES if self.source.chance(0.6)]
        self.random.shuffle(pieces)
        names = [f"p_{p}" for p in pieces]
        lines = ["state start {", "packet.extract(hdr.h);", *self._statements(scope)]
        lines += [*self._transition(names, scope), "}"]
        for i, piece in enumerate(pieces):
            maker: Callable[[Lines], Lines] = getattr(self, f"_{piece}")
            lines += [f"state {names[i]} {{", *maker(names[i + 1 :])]
        return [*self.locals, *lines]

    def _statements(self, scope: Scope, most: int = 1) -> Lines:
        """Draws the statements of a state. No variable is assigned twice on any path, because p4c
        drops the first of two assignments even if a packet is too short to reach the second."""
        lines: Lines = []
        for _ in range(self.random.randrange(most + 1)):
            free = tuple(
                replace(v, writable=v.writable and not self._taken(v)) for v in scope.variables
            )
            new, scope = self.statements.statement(replace(scope, variables=free), PARSER, 0)
            lines += new
            self.assigned |= {found[1] for line in new if (found := ASSIGNED.match(line))}
        return lines

    def _taken(self, variable: Variable) -> bool:
        """Whether the variable, a part of it, or a variable that contains it is already assigned in
        some state."""
        text = variable.text
        return any(
            f"{n}.".startswith(f"{text}.") or f"{text}.".startswith(f"{n}.") for n in self.assigned
        )

    def _transition(self, behind: Lines, scope: Scope) -> Lines:
        """Draws a transition to a later state, by a select over one or two keys."""
        goals = [*behind[:3], *behind[:1], "accept"]
        if self.source.chance(0.2):
            return [f"transition {self.random.choice(goals)};"]
        if self.source.chance(0.05):
            goals.append("reject")
        keys = [self._key(scope) for _ in range(self.random.choice([1, 1, 2]))]
        lines = [f"transition select({', '.join(text for text, _ in keys)}) {{"]
        if len(keys) == 1 and keys[0][1] == 8 and behind != ["more"] and self.source.chance(0.2):
            lines.append("pvs: accept;")
        for _ in range(self.random.randrange(1, 4)):
            labels = [self._label(width) for _, width in keys]
            if len(labels) > 1 and all(" .. " in label for label in labels):
                labels[1] = labels[1].split(" .. ")[0]  # p4c refuses cases of more than 100 masks
            if len(labels) > 1 and self.source.chance(0.2):
                labels[1] = "_"
            text = labels[0] if len(labels) == 1 else f"({', '.join(labels)})"
            case = f"{text}: {self.random.choice(goals)};"
            if not any(line.startswith(f"{text}: ") for line in lines):
                lines.append(case)
        if self.source.chance(0.9):
            lines.append(f"default: {self.random.choice(goals)};")
        return [*lines, "}"]

    def _key(self, scope: Scope) -> tuple[str, int]:
        which = self.random.random()
        if which < 0.15:
            width = self.random.choice([4, 8, 12, 16])
            return f"packet.lookahead<bit<{width}>>()", width
        if which < 0.4:
            name, kind = self.random.choice(scope.numbers(unsigned=True))
            return f"({name} {self.random.choice('+^')} {kind.width}w1)", kind.width
        known = [(n, k.width) for n, k in scope.numbers(unsigned=True) if k.width <= 64]
        return self.random.choice(known)

    def _label(self, width: int) -> str:
        """Draws a label of one key. A label never matches all values, because p4c writes such a
        label as a default, which BMv2 tries last."""
        value = self.source.number(width)
        which = self.random.random()
        mask = self.source.number(width)
        if which < 0.5 and mask:  # BMv2 compares bits of the value that p4c leaves outside the mask
            return f"{value & mask:#x} &&& {mask:#x}"
        low, high = sorted((value, self.source.number(width)))
        high = min(high, low + RANGE_MAX)
        if which < 0.7 and (low, high) != (0, (1 << width) - 1):
            return f"{low:#x} .. {high:#x}"
        return f"{value:#x}"

    def _extracted(self, text: str, kind: Struct) -> Scope:
        return self.scope.adding(Variable(t, k) for t, k in kind.leaves(text))

    def _regular(self, name: str, behind: Lines) -> Lines:
        scope = self._extracted(f"hdr.{name}", self.types[name])
        lines = [f"packet.extract(hdr.{name});", *self._statements(scope)]
        return [*lines, *self._transition(behind, scope), "}"]

    def _x(self, behind: Lines) -> Lines:
        return self._regular("x", behind)

    def _y(self, behind: Lines) -> Lines:
        return self._regular("y", behind)

    def _z(self, behind: Lines) -> Lines:
        return self._regular("z", behind)

    def _s(self, behind: Lines) -> Lines:
        """Draws a state that extracts elements of the stack s in a loop, which continues as long as
        the last element asks for it. Going beyond the stack's end is the error StackOutOfBounds."""
        bit = self.random.randrange(8)
        lines = ["packet.extract(hdr.s.next);"]
        if self.source.chance(0.4):
            lines.append("meta.a = meta.a + hdr.s.last.v;")
        if self.source.chance(0.4):
            lines.append("meta.b = (bit<16>)hdr.s.lastIndex;")
        goal = self.random.choice([*behind[:2], "accept"])
        lines += [f"transition select(hdr.s.last.v[{bit}:{bit}]) {{", "1: p_s;"]
        return [*lines, f"default: {goal};", "}", "}"]

    def _t(self, behind: Lines) -> Lines:
        count = self.random.randrange(1, 5)
        return [
            *["packet.extract(hdr.t.next);"] * count,
            *self._transition(behind, self.scope),
            "}",
        ]

    def _union(self, behind: Lines) -> Lines:
        goal = self.random.choice([*behind[:2], "accept"])
        key = self.random.choice(["hdr.h.sel[0:0]", "packet.lookahead<bit<1>>()"])
        lines = [f"transition select({key}) {{", "0: u_a;", "default: u_b;", "}", "}"]
        for member in "ab":
            lines += [f"state u_{member} {{", f"packet.extract(hdr.u.{member});"]
            lines += [f"transition {goal};", "}"]
        return lines

    def _varbit(self, behind: Lines) -> Lines:
        """Draws the extraction of a header of variable length. The length of its varbit field may
        exceed the field's maximum or not be whole bytes. Both lead to an error."""
        bits = self.random.choice(
            [
                "((bit<32>)hdr.h.sel & 7) << 3",
                "(bit<32>)(packet.lookahead<bit<8>>() & 7) * 8",
                "(bit<32>)hdr.h.sel[2:0] << 3",
                f"32w{self.random.randrange(9) * 8}",
                "((bit<32>)hdr.h.sel & 15) * 8",
                "(bit<32>)hdr.h.sel",
            ]
        )
        name = self.random.choice(["v", "w"])
        if self.long:
            bits = f"({bits}) << 7"
        lines = [f"packet.extract(hdr.{name}, {bits});"]
        return [*lines, *self._transition(behind, self.scope), "}"]

    def _advance(self, behind: Lines) -> Lines:
        count = self.random.choice(["32w8", "32w24", "((bit<32>)hdr.h.sel & 3) << 3"])
        return [f"packet.advance({count});", *self._transition(behind, self.scope), "}"]

    def _ahead(self, behind: Lines) -> Lines:
        if self.source.chance(0.5):
            lines = ["meta.n.b = packet.lookahead<bit<16>>();"]
        else:
            kind, name = self.types["x"], self.source.name("l")
            paths = [t for t, k in kind.leaves(name) if isinstance(k, Bits) and not k.signed]
            lines = [f"{kind} {name} = packet.lookahead<{kind}>();"]
            lines += [f"meta.n.a = (bit<8>){path};" for path in paths[:1]]
        return [*lines, *self._transition(behind, self.scope), "}"]

    def _verify(self, behind: Lines) -> Lines:
        test = self.statements.expressions.condition(self.scope, 1)
        error = self.random.choice(["Odd", "Even"])
        return [f"verify({test}, error.{error});", *self._transition(behind, self.scope), "}"]

    def _code(self, behind: Lines) -> Lines:
        body = self._statements(self.scope, 3)
        return [*body, *self._transition(behind, self.scope), "}"]

    def _sub(self, behind: Lines) -> Lines:
        """Draws a sub-parser with two states, over a header that the outer parser passes to it."""
        kind = self.types["k"]
        inner = Scope((Variable("m", Bits(8)), Variable("g", Bits(16), False)))
        seen = inner.adding(Variable(t, k) for t, k in kind.leaves("one"))
        outer, self.scope = self.scope, inner
        self.top += [
            f"parser Sub(packet_in packet, out {kind} one, inout bit<8> m, in bit<16> g) {{"
        ]
        self.top += ["state start {", *self._transition(["more"], inner), "}"]
        self.top += ["state more {", "packet.extract(one);", *self._statements(seen)]
        self.top += ["transition accept;", "}", "}"]
        self.scope = outer
        self.locals.append("Sub() sub;")
        given = self.statements.expression(Bits(16), self.scope, 1)
        free = [v for v in self.scope.variables if v.kind == Bits(8) and v.writable]
        place = self.random.choice([v.text for v in free if not self._taken(v)] or ["meta.o.a"])
        self.assigned.add(place)
        lines = [f"sub.apply(packet, hdr.k, {place}, {given});"]
        return [*lines, *self._transition(behind, self.scope), "}"]
