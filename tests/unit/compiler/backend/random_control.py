"""Random control flow with its meaning: tables, hit/miss/action_run, sub-controls, return, exit."""

from __future__ import annotations

from collections.abc import Callable

from random_program import Bits, Code, Env, Expr, Generator

BYTE, WORD = Bits(8), Bits(16)


class Returned(Exception):
    """`return` of the innermost control or action."""


class Exited(Exception):
    """`exit`: ends everything, after the copy-out of what is being executed."""


class ControlGenerator(Generator):
    """Adds statements with tables to Generator's; declarations collects their text."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.declarations: list[str] = []
        self.tables: list[Callable[[Env], tuple[bool, str]]] = []
        self.table_actions: list[list[str]] = []
        self.sub_controls: list[str] = []
        self.in_sub_control = False

    # ------------------------------------------------------------------- tables

    def table(self) -> int:
        """A new table with constant entries on one or two fields; its number."""
        number = len(self.tables)
        fields = [n for n, t in self.variables.items() if n.startswith("hdr") and t.width <= 16]
        keys = self.random.sample(fields, self.random.choice([1, 2]))
        actions = [self._action(f"t{number}_a{i}") for i in range(3)]
        entries: dict[tuple[int, ...], tuple[int, int]] = {}
        for _ in range(4):
            key = tuple(self._entry_value(self.variables[k]) for k in keys)
            entries.setdefault(key, (self.random.randrange(3), self.random.randrange(256)))
        default = (self.random.randrange(3), self.random.randrange(256))
        self.declarations.append(_table_text(number, keys, entries, default))

        def apply(env: Env) -> tuple[bool, str]:
            wanted = tuple(env[k] % (1 << self.shapes[k].width) for k in keys)
            chosen = entries.get(wanted, default)
            actions[chosen[0]](env, chosen[1])
            return wanted in entries, f"t{number}_a{chosen[0]}"

        self.shapes = dict(self.variables)
        self.tables.append(apply)
        self.table_actions.append([f"t{number}_a{i}" for i in range(3)])
        return number

    def _entry_value(self, shape: Bits) -> int:
        return self.random.choice([0, 1, (1 << shape.width) - 1, self.random.getrandbits(2)]) % (
            1 << shape.width
        )

    def _action(self, name: str) -> Callable[[Env, int], None]:
        """An action with one run-time argument, called like a variable in its body."""
        known = dict(self.variables)
        self.variables = {n: t for n, t in known.items() if n.startswith("hdr")}
        argument = f"{name}_arg"
        readable = {**self.variables, argument: BYTE}
        target = self.random.choice(list(self.variables))
        writable, self.variables = self.variables, readable
        source = self.expr(writable[target], 2)
        condition = self.condition(1)
        self.variables = known
        leave = self.random.choice(["", "", "return;", "exit;"])
        second = self.random.choice(list(writable))
        text = f"""action {name}(bit<8> {argument}) {{
            {target} = {source.text};
            if ({condition.text}) {{ {leave} }}
            {second} = {second} ^ 1;
        }}"""
        self.declarations.append(text)

        def run(env: Env, given: int) -> None:
            local = {**env, argument: given}
            local[target] = source.value(local)
            env[target] = local[target]
            if condition.value(local) and leave:
                if leave == "exit;":
                    raise Exited
                return
            env[second] = writable[second].wrap(env[second] ^ 1)

        return run

    # --------------------------------------------------------------- statements

    def statement(self, depth: int) -> Code:
        kinds = [super().statement, super().statement]
        if depth > 0:
            kinds += [self._leave_statement]
            if not self.in_sub_control:
                kinds += [self._apply, self._apply_on_both_sides, self._hit]
                kinds += [self._switch_action, self._sub_control]
        return self.random.choice(kinds)(depth)

    def _apply(self, depth: int) -> Code:
        number = self.table()
        return Code(f"t{number}.apply();", lambda env: void(self.tables[number](env)))

    def _apply_on_both_sides(self, depth: int) -> Code:
        """One table at two places that exclude each other, with different code behind it."""
        number, condition = self.table(), self.condition(1)
        then, other = self.block(1, depth - 1), self.block(2, depth - 1)

        def run(env: Env) -> None:
            chosen = then if condition.value(env) else other
            self.tables[number](env)
            chosen.run(env)

        return Code(
            f"if ({condition.text}) {{ t{number}.apply(); {then.text} }} "
            f"else {{ t{number}.apply(); {other.text} }}",
            run,
        )

    def _hit(self, depth: int) -> Code:
        number = self.table()
        then, other = self.block(2, depth - 1), self.block(1, depth - 1)
        test, swap = self.random.choice([("hit", False), ("miss", True)])

        def run(env: Env) -> None:
            hit, _ = self.tables[number](env)
            (then if hit != swap else other).run(env)

        return Code(
            f"if (t{number}.apply().{test}) {{\n{then.text}\n}} else {{\n{other.text}\n}}", run
        )

    def _switch_action(self, depth: int) -> Code:
        number = self.table()
        first = self.table_actions[number][0]
        on_first, otherwise = self.block(1, depth - 1), self.block(1, depth - 1)

        def run(env: Env) -> None:
            _, action = self.tables[number](env)
            (on_first if action == first else otherwise).run(env)

        return Code(
            f"switch (t{number}.apply().action_run) {{ {first}: {{ {on_first.text} }} "
            f"default: {{ {otherwise.text} }} }}",
            run,
        )

    def _leave_statement(self, depth: int) -> Code:
        condition = self.condition(1)
        word, error = self.random.choice([("return", Returned), ("exit", Exited)])

        def run(env: Env) -> None:
            if condition.value(env):
                raise error

        return Code(f"if ({condition.text}) {{ {word}; }}", run)

    def _sub_control(self, depth: int) -> Code:
        """A control of its own, applied to arguments that may be one and the same field."""
        number = len(self.sub_controls)
        outer = self.variables
        inner = {"p": BYTE, "q": WORD, "r": BYTE}
        self.variables, self.in_sub_control = dict(inner), True
        body = self.block(3, min(depth, 2))
        # q is an input: P4 lets nothing assign it
        self.variables, self.in_sub_control = outer, False
        self.sub_controls.append(
            f"control S{number}(inout bit<8> p, in bit<16> given, out bit<8> r) {{ apply {{"
            f" bit<16> q = given; r = 0; {body.text} }} }}"
        )
        self.declarations.append(f"S{number}() s{number};")
        bytes_ = [n for n, t in outer.items() if t == BYTE]
        p, r = self.random.choice(bytes_), self.random.choice(bytes_)
        q: Expr = self.expr(WORD, 2)

        def run(env: Env) -> None:
            local = {"p": env[p], "q": q.value(env), "r": 0}
            left: BaseException | None = None
            try:
                body.run(local)
            except Returned:
                pass
            except Exited as problem:
                left = problem
            env[p] = local["p"]
            env[r] = local["r"]
            if left is not None:
                raise left

        return Code(f"s{number}.apply({p}, {q.text}, {r});", run)


def void(_: object) -> None:
    return None


def _table_text(
    number: int,
    keys: list[str],
    entries: dict[tuple[int, ...], tuple[int, int]],
    default: tuple[int, int],
) -> str:
    key_text = " ".join(f"{key}: exact;" for key in keys)
    rows = " ".join(
        f"({', '.join(map(str, key))}): t{number}_a{action}({argument});"
        for key, (action, argument) in entries.items()
    )
    return f"""table t{number} {{
        key = {{ {key_text} }}
        actions = {{ t{number}_a0; t{number}_a1; t{number}_a2; }}
        const default_action = t{number}_a{default[0]}({default[1]});
        const entries = {{ {rows} }}
    }}"""
