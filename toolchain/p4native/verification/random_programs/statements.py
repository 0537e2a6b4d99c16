"""Random statements as lines of text. The braces of a block have lines of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from p4native.verification.random_programs.expressions import Expressions
from p4native.verification.random_programs.kinds import (
    BOOL,
    COLOUR,
    Bits,
    Function,
    Kind,
    Scope,
    Source,
    Struct,
    Variable,
)

Lines = list[str]


@dataclass(frozen=True)
class Place:
    """Where a statement is: in a control's block, an action, a function or a parser state.

    result: the type that `return` gives in a function.
    """

    where: str
    result: Kind | None = None
    loop: bool = False

    @property
    def control(self) -> bool:
        return self.where == "control"


@dataclass
class Externs:
    """The extern objects that the statements of one control may use."""

    registers: list[tuple[str, Bits, int]] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    meters: list[str] = field(default_factory=list)
    traffic: list[Callable[[], Lines]] = field(default_factory=list)


Maker = Callable[[Scope, Place, int], tuple[Lines, Scope]]


class Statements:
    """Draws statements. Each method returns the lines and the scope after them."""

    def __init__(self, source: Source, expressions: Expressions) -> None:
        self.source, self.random = source, source.random
        self.expressions = expressions
        self.externs = Externs()
        self.cell = "0"
        self.flow: list[Maker] = []
        self.exits = True
        """Whether `exit` may be drawn. In a sub-control, p4c ignores it. p4c also drops assignments
        before the sub-control's application that are followed by others."""

    def block(self, scope: Scope, place: Place, size: int, depth: int) -> Lines:
        lines: Lines = []
        for _ in range(size):
            new, scope = self.statement(scope, place, depth)
            lines += new
        return lines

    def statement(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        makers: list[Maker] = [self._assign] * 4
        makers += [self._slice, self._slice, self._compound, self._declare, self._call]
        makers += [self._whole, self._tuple, self._computed_element]
        if place.where in ("control", "action"):
            makers += [self._extern, self._hash]
            if not scope.plain:
                makers += [self._validity] * 4
                makers += [self._traffic, self._traffic] if self.externs.traffic else []
            if depth > 0:
                makers += [self._leave]
        if place.where != "parser" and depth > 0:
            makers += [self._if] * 3
            makers += [self._guarded, self._guarded]
        if place.where == "action" and depth > 0:
            makers.append(self._loop)
        if place.loop:
            makers.append(self._out_of_loop)
        if place.where == "function" and depth > 0:
            makers.append(self._early_return)
        if place.control and depth > 0:
            makers += [self._switch]
            if not scope.plain:
                makers += self.flow
        return self.random.choice(makers)(scope, place, depth - 1)

    def expression(self, kind: Kind, scope: Scope, depth: int = 3) -> str:
        return self.expressions.of(kind, scope, self.random.randrange(depth + 1))

    # -------------------------------------------------------------- assignments

    def _assign(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        to = self.random.choice(scope.scalars(writable=True))
        return [f"{to.text} = {self.expression(to.kind, scope)};"], scope

    def _slice(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        numbers = scope.numbers(writable=True, unsigned=True)
        if not numbers:
            return self._assign(scope, place, depth)
        name, shape = self.random.choice(numbers)
        low = self.random.randrange(shape.width)
        high = self.random.randrange(low, shape.width)
        value = self.expression(Bits(high - low + 1), scope, 2)
        return [f"{name}[{high}:{low}] = {value};"], scope

    def _compound(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        numbers = scope.numbers(writable=True)
        if not numbers:
            return self._assign(scope, place, depth)
        name, shape = self.random.choice(numbers)
        operators = ["+=", "-=", "*=", "&=", "|=", "^="]
        operators += ["|+|=", "|-|="] if shape.width > 1 else []
        return [f"{name} {self.random.choice(operators)} {self.expression(shape, scope)};"], scope

    def _declare(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        name = self.source.name("v")
        kind: Kind = self.random.choice(
            [*(v.kind for v in scope.variables), BOOL, COLOUR, Bits(8), Bits(9, True)]
        )
        if isinstance(kind, Struct) and kind.header:
            kind = Bits(16)
        lines = [f"{kind} {name} = {self.expression(kind, scope)};"]
        new = [Variable(name, kind)]
        if isinstance(kind, Struct):
            new += [Variable(text, leaf) for text, leaf in kind.leaves(name)]
        return lines, scope.adding(new)

    def _whole(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        """Draws an assignment of a whole struct. The value is another struct or a list, which may
        read the struct that is assigned."""
        structs = [
            v
            for v in scope.variables
            if isinstance(v.kind, Struct) and v.writable and not v.kind.header
        ]
        if not structs:
            return self._assign(scope, place, depth)
        to = self.random.choice(structs)
        return [f"{to.text} = {self.expression(to.kind, scope, 2)};"], scope

    def _tuple(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        name = self.source.name("t")
        shapes = [self.random.choice([Bits(8), Bits(16), Bits(5, True)]) for _ in range(2)]
        kinds = ", ".join(map(str, shapes))
        values = ", ".join(self.expression(k, scope, 1) for k in shapes)
        lines = [f"tuple<{kinds}> {name} = {{ {values} }};"]
        new = [Variable(f"{name}[{i}]", k, writable=False) for i, k in enumerate(shapes)]
        return lines, scope.adding(new)

    def _computed_element(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        """Draws a statement that uses an element of the stack `t` at an index known only at run
        time. All elements of `t` are valid."""
        if place.where not in ("control", "action") or "hdr.t[0].v" not in scope.of(Bits(8)):
            return self._assign(scope, place, depth)
        index, before = self.expression(Bits(2), scope, 1), []
        if "hdr.h." in index:  # p4c finds no type for it if h holds a struct
            name = self.source.name("v")
            index, before = name, [f"bit<2> {name} = {index};"]
        element = f"hdr.t[{index}].v"
        if self.source.chance(0.5):
            return [*before, f"{element} = {self.expression(Bits(8), scope, 1)};"], scope
        to = self.random.choice(scope.of(Bits(8), writable=True))
        return [*before, f"{to} = {element};"], scope

    def _call(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        usable = list(scope.functions)
        if not usable:
            return self._assign(scope, place, depth)
        called = self.random.choice(usable)
        text = self.expressions.call(called, scope, 2)
        places = scope.of(called.result, writable=True)
        if text is None or not places:
            return self._assign(scope, place, depth)
        return [f"{self.random.choice(places)} = {text};"], scope

    # ------------------------------------------------------------------ headers

    def fill(self, target: str, kind: Struct, scope: Scope) -> Lines:
        """Draws assignments to all fields of a header that was just made valid."""
        return [
            f"{path} = {self.expression(leaf, scope, 1)};" for path, leaf in kind.leaves(target)
        ]

    def _validity(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        if not scope.headers:
            return self._assign(scope, place, depth)
        header = self.random.choice(scope.headers)
        assert isinstance(header.kind, Struct)
        which = self.random.randrange(6)
        if which == 0:
            return [f"{header.text}.setInvalid();"], scope
        if which == 1:
            filled = self.fill(header.text, header.kind, scope)
            return [f"{header.text}.setValid();", *filled], scope
        if which == 2:
            return [f"{header.text} = {self.expression(header.kind, scope, 2)};"], scope
        same = [h for h in scope.headers if h.kind == header.kind]
        if which == 3 and "hdr.s[0]" in {h.text for h in scope.headers}:
            change = self.random.choice(["push_front", "pop_front"])
            return [f"hdr.s.{change}({self.random.choice([1, 1, 2, 5])});"], scope
        return [f"{header.text} = {self.random.choice(same).text};"], scope

    def _guarded(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        """Draws a block that uses a header's fields where the header is valid. Nothing in the block
        changes which headers are valid."""
        if not scope.headers or scope.plain:
            return self._if(scope, place, depth)
        header = self.random.choice(scope.headers)
        assert isinstance(header.kind, Struct)
        new = [Variable(text, leaf) for text, leaf in header.kind.leaves(header.text)]
        inner = replace(scope.adding(new), plain=True)
        test = f"{header.text}.isValid()"
        if self.source.chance(0.4):
            test = f"{test} && {self.expressions.condition(inner, 1)}"
        body = self.block(inner, place, self.random.randrange(1, 4), depth)
        return [f"if ({test}) {{", *body, "}"], scope

    # ------------------------------------------------------------- control flow

    def _if(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        lines = [f"if ({self.expressions.condition(scope, 2)}) {{"]
        lines += self.block(scope, place, self.random.randrange(1, 4), depth)
        if self.source.chance(0.6):
            lines += ["} else {", *self.block(scope, place, self.random.randrange(1, 3), depth)]
        return [*lines, "}"], scope

    def _switch(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        if self.source.chance(0.3):
            subject, labels = self.expression(COLOUR, scope, 1), ["colour_t.RED", "colour_t.BLUE"]
        else:
            width = self.random.choice([3, 8, 16])
            subject = self.expression(Bits(width), scope, 2)
            labels = list({f"{width}w{self.source.number(width)}": None for _ in range(3)})
        lines = [f"switch ({subject}) {{"]
        for i, label in enumerate(labels):
            if i + 1 < len(labels) and self.source.chance(0.3):
                lines += [f"{label}:"]
                continue
            lines += [f"{label}: {{", *self.block(scope, place, 1, depth), "}"]
        if self.source.chance(0.7):
            lines += ["default: {", *self.block(scope, place, 1, depth), "}"]
        return [*lines, "}"], scope

    def _loop(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        name, inside = self.source.name("i"), replace(place, loop=True)
        inner = scope.adding([Variable(name, Bits(8), writable=False)])
        limit = self.random.randrange(1, 5)
        head = f"for (bit<8> {name} = 0; {name} < {limit}; {name} = {name} + 1) {{"
        if self.expressions.refused and self.source.chance(0.5):
            head = f"for (bit<8> {name} in 8w{self.random.randrange(4)} .. 8w{limit}) {{"
        body = self.block(inner, inside, self.random.randrange(1, 4), min(depth, 1))
        return [head, *body, "}"], scope

    def _out_of_loop(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        word = self.random.choice(["break", "continue"])
        return [f"if ({self.expressions.condition(scope, 1)}) {{", f"{word};", "}"], scope

    def _leave(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        word = self.random.choice(["exit", "return"])
        word = word if self.exits else "return"
        return [f"if ({self.expressions.condition(scope, 1)}) {{", f"{word};", "}"], scope

    def _early_return(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        assert place.result is not None
        value = self.expression(place.result, scope, 1)
        test = self.expressions.condition(scope, 1)
        return [f"if ({test}) {{", f"return {value};", "}"], scope

    # ------------------------------------------------------------------ externs

    def _extern(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        options: list[Lines] = []
        for name, shape, cells in self.externs.registers:
            to = scope.of(shape, writable=True)
            index = f"((bit<32>)({self.cell} & {cells - 1}))"
            if to:
                options.append([f"{name}.read({self.random.choice(to)}, {index});"])
            options.append([f"{name}.write({index}, {self.expression(shape, scope, 2)});"])
        for name in self.externs.counters:
            options.append([f"{name}.count((bit<32>){self.expression(Bits(3), scope, 1)});"])
        for name in self.externs.meters:
            to = scope.of(Bits(8), writable=True)
            index = f"(bit<32>){self.expression(Bits(3), scope, 1)}"
            options.append([f"{name}.execute_meter({index}, {self.random.choice(to)});"])
        if not options:
            return self._assign(scope, place, depth)
        return self.random.choice(options), scope

    def _hash(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        to = [n for n, k in scope.numbers(writable=True, unsigned=True) if k.width <= 64]
        if not to:
            return self._assign(scope, place, depth)
        algorithm = self.random.choice(
            ["crc16", "crc32", "csum16", "xor16", "identity", "crc16_custom", "crc32_custom"]
        )
        shapes = [k for _, k in scope.numbers(unsigned=True)]
        chosen = [self.random.choice(shapes) for _ in range(self.random.randrange(1, 4))]
        data = ", ".join(self.expression(k, scope, 1) for k in chosen)
        base, most = self.random.randrange(50), self.random.choice([1, 7, 256, 65536, 1 << 31])
        target = self.random.choice(to)
        arguments = f"HashAlgorithm.{algorithm}, 32w{base}, {{ {data} }}, 32w{most}"
        return [f"hash({target}, {arguments});"], scope

    def _traffic(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        lines = self.random.choice(self.externs.traffic)()
        return [f"if ({self.expressions.condition(scope, 1)}) {{", *lines, "}"], scope


def function_text(
    function: Function, statements: Statements, globals_: tuple[Variable, ...]
) -> Lines:
    """Returns a function whose body uses its parameters and the constants."""
    scope = Scope(globals_, plain=True)
    parameters, before = [], []
    for i, (direction, kind) in enumerate(function.parameters):
        parameters.append(f"{direction} {kind} p{i}")
        if direction == "out":
            before.append(f"p{i} = {statements.expression(kind, scope, 1)};")
        new = [Variable(f"p{i}", kind, direction != "in")]
        if isinstance(kind, Struct):
            new += [Variable(t, leaf, direction != "in") for t, leaf in kind.leaves(f"p{i}")]
        scope = scope.adding(new)
    place = Place("function", function.result)
    if not scope.scalars(writable=True):
        before.append("bit<8> w0 = 7;")
        scope = scope.adding([Variable("w0", Bits(8))])
    body = statements.block(scope, place, statements.random.randrange(1, 4), 2)
    last = f"return {statements.expression(function.result, scope, 2)};"
    head = f"{function.result} {function.name}({', '.join(parameters)}) {{"
    return [head, *before, *body, last, "}"]
