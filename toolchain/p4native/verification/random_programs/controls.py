"""Random controls: actions, tables with entries, sub-controls, and statements that apply them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from p4native.verification.random_programs.kinds import (
    BOOL,
    CODE,
    COLOUR,
    Bits,
    Choice,
    Kind,
    Scalar,
    Scope,
    Source,
    Struct,
    Variable,
)
from p4native.verification.random_programs.statements import Externs, Lines, Place, Statements

CONTROL, ACTION = Place("control"), Place("action")
KEY_KINDS = ("exact", "exact", "exact", "lpm", "ternary", "ternary", "range", "optional")
RANKED = ("ternary", "range", "optional")
DATA: tuple[Kind, ...] = (Bits(8), Bits(16), Bits(9), Bits(72), Bits(8, True))


@dataclass(frozen=True)
class Action:
    """An action. parameters: (direction, type), with direction "" for data that entries give."""

    name: str
    parameters: tuple[tuple[str, Kind], ...]

    @property
    def data(self) -> list[tuple[str, Kind]]:
        """The parameters for which entries give arguments, with their names."""
        return [(f"d{i}", k) for i, (way, k) in enumerate(self.parameters) if not way]


@dataclass
class Control:
    """The parts of a control that have been drawn so far. Its declarations come before its apply
    block."""

    scope: Scope
    declarations: Lines = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)


class Controls:
    """Draws whole controls. top: program text that must come before the main controls. entries:
    lines of the script."""

    def __init__(self, source: Source, statements: Statements, runtime_entries: bool) -> None:
        self.source, self.random = source, source.random
        self.statements = statements
        self.runtime_entries = runtime_entries
        self.top: Lines = []
        self.entries: list[str] = []
        self.current: Control | None = None
        self.nested = False
        statements.flow = [self._apply, self._hit, self._action_run, self._sub, self._direct]

    def draw(self, scope: Scope, size: int, first: Lines, last: Lines) -> tuple[Lines, Lines]:
        """Returns (declarations, statements of the apply block) of a control with these
        parameters."""
        outer, outer_flow = self.current, self.statements.flow
        if self.nested:
            self.statements.flow = [self._apply, self._hit, self._action_run, self._direct]
        local = []
        self.current = Control(scope)
        for kind in (Bits(8), self.random.choice([*DATA, BOOL])):
            name = self.source.name("c")
            value = self.statements.expressions.of(kind, Scope(()), 0)
            self.current.declarations.append(f"{kind} {name} = {value};")
            local.append(Variable(name, kind))
        self.current.scope = scope.adding(local)
        for _ in range(self.random.randrange(1, 4)):
            self._action()
        body = self.statements.block(self.current.scope, CONTROL, size, 3)
        made = self.current
        self.current, self.statements.flow = outer, outer_flow
        return made.declarations, [*first, *body, *last]

    # ------------------------------------------------------------------ actions

    def _action(self) -> Action:
        assert self.current is not None
        parameters: list[tuple[str, Kind]] = []
        for _ in range(self.random.randrange(3)):
            direction = self.random.choice(["", "", "in", "inout", "out"])
            kind = self.random.choice(DATA if not direction else [Bits(8), Bits(16)])
            parameters.append((direction, kind))
        parameters.sort(key=lambda p: not p[0])  # data comes last
        action = Action(self.source.name("a"), tuple(parameters))
        new, head, before = [], [], []
        for i, (direction, kind) in enumerate(action.parameters):
            head.append(f"{direction} {kind} d{i}".strip())
            new.append(Variable(f"d{i}", kind, direction in ("inout", "out")))
            if direction == "out":
                value = self.statements.expression(kind, self.current.scope, 0)
                before.append(f"d{i} = {value};")
        scope = self.current.scope.adding(new)
        body = self.statements.block(scope, ACTION, self.random.randrange(1, 5), 2)
        text = [f"action {action.name}({', '.join(head)}) {{", *before, *body, "}"]
        self.current.declarations += text
        self.current.actions.append(action)
        return action

    def _bound(self, action: Action, scope: Scope) -> str | None:
        """Draws arguments for those parameters of an action that have a direction. Returns None if
        nothing in scope can be assigned for one of them."""
        given = []
        for direction, kind in action.parameters:
            if direction:
                text = self.statements.expressions.argument(direction, kind, scope, 1)
                if text is None:
                    return None
                given.append(text)
        return ", ".join(given)

    def _direct(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        """Draws a direct call of an action, in which the arguments for its data are expressions."""
        assert self.current is not None
        action = self.random.choice(self.current.actions)
        bound = self._bound(action, scope)
        if bound is None:
            return [], scope
        data = [self.statements.expression(k, scope, 2) for _, k in action.data]
        return [f"{action.name}({', '.join([bound] * bool(bound) + data)});"], scope

    # ------------------------------------------------------------------- tables

    def _table(self) -> tuple[str, list[str]]:
        """Draws a new table, which is applied at one place only. Returns (its name, its actions'
        names)."""
        assert self.current is not None
        scope = self.current.scope
        name = self.source.name("t")
        while len(self.current.actions) < 2:
            self._action()
        few = min(3, len(self.current.actions))
        chosen = self.random.sample(self.current.actions, self.random.randrange(1, few + 1))
        usable = [(a, self._bound(a, scope)) for a in chosen]
        actions = [(a, bound) for a, bound in usable if bound is not None]
        keys = self._keys(scope)
        lines = [f"table {name} {{", "key = {"]
        lines += [f'{text} : {kind} @name("k{i}");' for i, (text, kind, _) in enumerate(keys)]
        lines += ["}", "actions = {"]
        lines += [f"{a.name}({b});" if b else f"{a.name};" for a, b in actions]
        lines += ["@defaultonly NoAction;" if self.source.chance(0.2) else "NoAction;", "}"]
        default = self._chosen(actions) if self.source.chance(0.8) else None
        if default:
            lines.append(f"{'const ' * self.source.chance(0.3)}default_action = {default};")
        if keys and actions:
            at_run_time = self.runtime_entries and self.source.chance(0.5)
            if at_run_time and all(not isinstance(k, Choice) for _, _, k in keys):
                self._script_entries(name, keys, [a for a, _ in actions])
            else:
                lines += self._const_entries(keys, actions)
        lines += [f"size = {self.random.choice([16, 64, 1024])};", "}"]
        self.current.declarations += lines
        return name, [a.name for a, _ in actions]

    def _keys(self, scope: Scope) -> list[tuple[str, str, Kind]]:
        """Draws the keys and returns (text, match kind, type) of each. At most one is lpm, as in
        BMv2, with a width that p4c accepts and BMv2 matches correctly."""
        keys: list[tuple[str, str, Kind]] = []
        choices: tuple[Scalar, ...] = (BOOL, COLOUR, CODE)
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 2, 3])):
            which = self.random.random()
            if which < 0.1 and scope.headers:
                keys.append((f"{self.random.choice(scope.headers).text}.isValid()", "exact", BOOL))
                continue
            if which < 0.2:
                choice = self.random.choice(choices)
                known = scope.of(choice)
                if known:
                    keys.append((self.random.choice(known), "exact", choice))
                    continue
            shapes = [k for _, k in scope.numbers(unsigned=True) if k.width <= 128]
            shape = self.random.choice(shapes)
            plain = replace(scope, functions=())
            text = self.statements.expression(shape, plain, 1)
            if " & " in text:  # p4c makes a mask of it, to which BMv2 cuts the entries too
                text = self.statements.expressions.of(shape, plain, 0)
            kind = self.random.choice(KEY_KINDS)
            usual = shape.width <= 64 and shape.width % 8 == 0
            if kind == "lpm" and (not usual or any(k == "lpm" for _, k, _ in keys)):
                kind = "exact"
            keys.append((text, kind, shape))
        return keys

    def _chosen(self, actions: Sequence[tuple[Action, str]]) -> str:
        """Draws a reference to an action, with constant data."""
        if not actions:
            return "NoAction()"
        action, bound = self.random.choice(actions)
        data = [self._constant(k) for _, k in action.data]
        return f"{action.name}({', '.join([bound] * bool(bound) + data)})"

    def _constant(self, kind: Kind) -> str:
        """Draws data of an entry in the program. It is never negative, since p4c loses the sign
        when it widens data."""
        if isinstance(kind, Bits) and kind.signed:
            return f"{kind.width}s{self.source.number(kind.width - 1)}"
        return self.statements.expressions.of(kind, Scope(()), 0)

    def _const_entries(
        self, keys: list[tuple[str, str, Kind]], actions: Sequence[tuple[Action, str]]
    ) -> Lines:
        ranked = any(kind in RANKED for _, kind, _ in keys)
        numbered = ranked and self.source.chance(0.3)
        largest = numbered and self.source.chance(0.5)
        lines = ["largest_priority_wins = false;"] if numbered and not largest else []
        lines.append("entries = {" if numbered else "const entries = {")
        priorities = self.random.sample(range(1, 100), 6)
        seen: set[str] = set()
        for i in range(self.random.randrange(1, 6)):
            drawn = [self._match(kind, k) for _, kind, k in keys]
            text = f"({', '.join(t for t, _ in drawn)})"
            plain = ", ".join(s for _, s in drawn)
            if plain in seen:
                continue
            seen.add(plain)
            rank = f"priority={priorities[i]}: " if numbered else ""
            lines.append(f"{rank}{text} : {self._chosen(actions)};")
        return [*lines, "}"] if len(seen) else []

    def _match(self, kind: str, shape: Kind) -> tuple[str, str]:
        """Draws a match. Returns it in the form of an entry in the program and in the form of the
        script."""
        if shape == BOOL:
            value = self.random.randrange(2)
            return ("false", "true")[value], str(value)
        if isinstance(shape, Choice):
            text = f"{shape}.{self.random.choice(shape.members)}"
            return text, text
        assert isinstance(shape, Bits)
        width = shape.width
        value = self.source.number(width)
        full = (1 << width) - 1
        if kind == "lpm":
            length = self.random.randrange(width + 1)
            mask = full >> (width - length) << (width - length)
            return f"{value & mask:#x} &&& {mask:#x}", f"{value & mask:#x}/{length}"
        if kind == "ternary" and self.source.chance(0.8):
            mask = self.source.number(width)
            return f"{value & mask:#x} &&& {mask:#x}", f"{value & mask:#x}&&&{mask:#x}"
        if kind == "range":
            low, high = sorted((value, self.source.number(width)))
            return f"{low:#x} .. {high:#x}", f"{low:#x}..{high:#x}"
        if kind in ("optional", "ternary") and self.source.chance(0.4):
            return "_", "" if kind == "optional" else "0x0&&&0x0"
        return f"{value:#x}", f"{value:#x}&&&{full:#x}" if kind == "ternary" else f"{value:#x}"

    def _script_entries(
        self, table: str, keys: list[tuple[str, str, Kind]], actions: list[Action]
    ) -> None:
        ranked = any(kind in RANKED for _, kind, _ in keys)
        seen: set[str] = set()
        for priority in range(1, self.random.randrange(2, 6)):
            matches = [self._match(kind, k)[1] for _, kind, k in keys]
            text = " ".join(f"k{i}:{m}" for i, m in enumerate(matches) if m)
            if text in seen:
                continue
            seen.add(text)
            action = self.random.choice(actions)
            data = [(name, self._script_value(k)) for name, k in action.data]
            given = ", ".join(f"{name}:{value:#x}" for name, value in data)
            rank = f"{priority} " if ranked else ""
            self.entries.append(f"add {table} {rank}{text} {action.name}({given})")

    def _script_value(self, kind: Kind) -> int:
        """Draws data of an entry in the script. It is never negative, as in _constant."""
        assert isinstance(kind, Bits)
        return self.source.number(kind.width - kind.signed)

    # --------------------------------------------------------------- statements

    def _apply(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        return [f"{self._table()[0]}.apply();"], scope

    def _hit(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        test = f"{self._table()[0]}.apply().{self.random.choice(['hit', 'miss'])}"
        which = self.random.randrange(4)
        if which == 0:
            test = f"!{test}"
        elif which == 1:
            other = self.statements.expressions.condition(scope, 1)
            operator = self.random.choice(["&&", "||"])
            test = f"{other} {operator} {test}" if depth else f"{test} {operator} {other}"
        lines = [f"if ({test}) {{", *self.statements.block(scope, place, 2, depth)]
        if self.source.chance(0.6):
            lines += ["} else {", *self.statements.block(scope, place, 1, depth)]
        return [*lines, "}"], scope

    def _action_run(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        table, actions = self._table()
        lines = [f"switch ({table}.apply().action_run) {{"]
        for action in actions[:2]:
            lines += [f"{action}: {{", *self.statements.block(scope, place, 1, depth), "}"]
        if self.source.chance(0.7):
            lines += ["default: {", *self.statements.block(scope, place, 1, depth), "}"]
        return [*lines, "}"], scope

    def _sub(self, scope: Scope, place: Place, depth: int) -> tuple[Lines, Scope]:
        """Draws a sub-control and its application. Several of its arguments may be the same
        variable."""
        assert self.current is not None
        kinds: list[tuple[str, Kind]] = [
            (self.random.choice(["in", "inout", "out"]), self.random.choice([Bits(8), Bits(16)]))
            for _ in range(self.random.randrange(1, 4))
        ]
        structs = [v.kind for v in scope.variables if isinstance(v.kind, Struct)]
        if structs and self.source.chance(0.4):
            kinds.append((self.random.choice(["in", "inout"]), self.random.choice(structs)))
        arguments = [self.statements.expressions.argument(d, k, scope, 1) for d, k in kinds]
        if None in arguments:
            return [], scope
        header = None
        if scope.headers and self.source.chance(0.5):
            header = self.random.choice(scope.headers)
        name, instance = self.source.name("S"), self.source.name("s")
        constant = self.source.chance(0.4)
        self._sub_text(name, kinds, header, constant)
        given = str(self.source.number(8)) if constant else ""
        self.current.declarations.append(f"{name}({given}) {instance};")
        passed = [*([header.text] if header else []), *map(str, arguments)]
        return [f"{instance}.apply({', '.join(passed)});"], scope

    def _sub_text(
        self, name: str, kinds: list[tuple[str, Kind]], header: Variable | None, constant: bool
    ) -> None:
        scope = Scope((), functions=self.current.scope.functions if self.current else ())
        head, first = [], []
        if header:
            head.append(f"inout {header.kind} ph")
            scope = replace(scope, headers=(Variable("ph", header.kind),))
        for i, (direction, kind) in enumerate(kinds):
            head.append(f"{direction} {kind} q{i}")
            new = [Variable(f"q{i}", kind, direction != "in")]
            if isinstance(kind, Struct):
                new += [Variable(t, leaf, direction != "in") for t, leaf in kind.leaves(f"q{i}")]
            scope = scope.adding(new)
        for i, (direction, kind) in enumerate(kinds):
            if direction == "out":
                first.append(f"q{i} = {self.statements.expressions.of(kind, Scope(()), 0)};")
        if constant:
            scope = scope.adding([Variable("given", Bits(8), False)])
        externs, self.statements.externs = self.statements.externs, Externs()
        nested, self.nested, self.statements.exits = self.nested, True, False
        declarations, body = self.draw(scope, self.random.randrange(1, 4), first, [])
        self.nested, self.statements.exits, self.statements.externs = nested, not nested, externs
        parameter = "(bit<8> given)" if constant else ""
        self.top += [f"control {name}({', '.join(head)}){parameter} {{", *declarations]
        self.top += ["apply {", *body, "}", "}"]
