"""Translates a control flow to C. Each table, conditional and action call becomes a label. The
jumps form no loop, because no packet reaches a node twice."""

from __future__ import annotations

from p4native.switch.bmv2_json.pipelines import following
from p4native.switch.model import Action, ActionCall, Conditional, Control, Table
from p4native.switch.translate.expressions import Expressions
from p4native.switch.translate.layout import Layout
from p4native.switch.translate.steps import Steps
from p4native.switch.translate.tables import TableApply
from p4native.switch.translate.terms import write_terms
from p4native.switch.translate.writer import Writer, comment, quoted


def exits(action: Action) -> bool:
    return any(p.op == "exit" for p in action.primitives)


class ControlWriter:
    """A writer of the function ingress() or egress(). name: which of the two."""

    def __init__(self, layout: Layout, out: Writer, name: str, control: Control) -> None:
        self.name = name
        self.layout = layout
        self.out = out
        self.control = control
        self.steps = Steps(layout, out)
        self.labels = {name: layout.names.make("node", name) for name in control.nodes}

    def goto(self, name: str | None) -> str:
        return f"goto {self.labels[name] if name is not None else 'end'};"

    def write(self) -> None:
        out = self.out
        with out.function(
            f"static void {self.name}(struct pipeline *p, struct packet *k, struct store *s)"
        ):
            out.line("(void)p, (void)k, (void)s;")
            self.steps.line(self.name)
            out.line(self.goto(self.control.first))
            for name in self.reachable():
                node = self.control.nodes[name]
                out.line()
                out.label(self.labels[name])
                out.line(f"/* {comment(name)} */")
                with out.block(""):
                    self.write_node(node)
            out.label("end")
            out.line("return;")

    def reachable(self) -> list[str]:
        """Returns the nodes in depth-first order, so that the text follows the likely path."""
        found: dict[str, None] = {}
        waiting = [self.control.first] if self.control.first is not None else []
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found[name] = None
            waiting += [n for n in reversed(self.next_nodes(name)) if n is not None]
        return list(found)

    def next_nodes(self, name: str) -> list[str | None]:
        node = self.control.nodes[name]
        if isinstance(node, Table) and self.direct_action(node):
            return [self.next_after_miss(node)]
        return following(node)

    def direct_action(self, table: Table) -> Action | None:
        """Returns the action of a table that always executes the same action, otherwise None."""
        counted = table.direct_counters or table.meter
        fixed = table.const_default and not table.keys and not counted
        return table.default_action if fixed else None

    def next_after_miss(self, table: Table) -> str | None:
        if table.hit_miss:
            return table.hit_miss[1]
        assert table.default_action
        return table.next_by_action[table.default_action.index]

    def write_node(self, node: Table | Conditional | ActionCall) -> None:
        if isinstance(node, Conditional):
            self.out.remark(node.source)
            expressions = Expressions(self.layout, self.out)
            condition = expressions.boolean(node.condition)
            if self.steps.tracing:
                self.out.line(f"bool truth = {condition};")
                self.out.line()
                text = quoted(node.source or node.name)
                self.steps.line("  %s: %s", text, 'truth ? "true" : "false"')
                write_terms(node.condition, expressions, "    ")
                condition = "truth"
            self.out.line(f"if ({condition})")
            self.out.line(f"\t{self.goto(node.true_next)}")
            self.out.line(self.goto(node.false_next))
        elif isinstance(node, ActionCall):
            self.steps.line("  %s", quoted(node.name))
            self.out.line(f"{self.layout.function(node.action)}(p, k, s, NULL);")
            self.write_exit([node.action])
            self.out.line(self.goto(node.next))
        else:
            self.write_table(node)

    def write_exit(self, actions: list[Action]) -> None:
        if any(exits(a) for a in actions):
            self.out.line("if (k->flow.exit)")
            self.out.line("\tgoto end;")

    def write_table(self, table: Table) -> None:
        apply = TableApply(self.layout, self.out, table)
        direct = self.direct_action(table)
        self.out.remark(table.source)
        if not direct:
            self.steps.place("  table ", table.name, table.source)
            self.steps.say(":")
        if direct:
            apply.write_constant(direct)
            self.write_exit([direct])
            self.out.line(self.goto(self.next_after_miss(table)))
            return
        apply.write_lookup()
        with self.out.block("switch (action)"):
            for number, action in table.outcomes().items():
                self.out.line(f"case {number}:")
                self.steps.action(action)
                self.out.line(f"\t{self.layout.function(action)}(p, k, s, args);")
                self.out.line("\tbreak;")
            self.out.line("default:")
            self.steps.line(", no action")
            self.out.line("\tbreak;")
        self.write_exit(list(table.outcomes().values()))
        self.write_next(table)

    def write_next(self, table: Table) -> None:
        out = self.out
        if table.hit_miss:
            out.line("if (e)")
            out.line(f"\t{self.goto(table.hit_miss[0])}")
            out.line(self.goto(table.hit_miss[1]))
            return
        ways = {*table.next_by_action.values(), table.base_default_next}
        if len(ways) > 1:
            with out.block("switch (action)"):
                for number, action in table.outcomes().items():
                    if action.index in table.next_by_action:
                        out.line(f"case {number}:")
                        out.line(f"\t{self.goto(table.next_by_action[action.index])}")
        out.line(self.goto(table.base_default_next))
