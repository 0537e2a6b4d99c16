"""Turns structured code into a pipeline's graph of tables and conditionals.

Consecutive statements that touch no table are gathered into one action, which a table without keys
calls. The reason is that BMv2's time depends on the number of tables and not on the number of
primitives. The graph is built from its end to its beginning, so that a node's successors have names
before the node itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from p4native.compiler import types
from p4native.compiler.backend import ir
from p4native.compiler.backend.assemble import assemble
from p4native.compiler.backend.loops import contain
from p4native.compiler.backend.places import Scalar
from p4native.compiler.backend.scope import Unit
from p4native.compiler.source import Position


@dataclass
class Target:
    """A place to which control goes: the node called `name`, the end of the pipeline (name None),
    or the place to which `link`, another target, leads."""

    name: str | None = None
    link: Target | None = None

    def resolve(self) -> str | None:
        seen: set[int] = set()
        target = self
        while target.link is not None and id(target) not in seen:
            seen.add(id(target))
            target = target.link
        return target.name


END = Target()
CALLER_BITS = 16


@dataclass
class Site:
    """One application of a table, and the targets to which control goes after it."""

    apply: ir.Apply
    branches: dict[str, Target]
    default: Target


@dataclass
class Graph:
    unit: Unit
    pipeline: ir.Pipeline
    tables: dict[str, ir.Table] = field(default_factory=dict)
    labels: dict[int, Target] = field(default_factory=dict)
    sites: dict[str, list[Site]] = field(default_factory=dict)
    # nodes whose successors are still Targets
    conditionals: list[tuple[ir.Conditional, Target, Target]] = field(default_factory=list)
    calls: list[tuple[ir.Table, Target]] = field(default_factory=list)

    def label(self, number: int) -> Target:
        return self.labels.setdefault(number, Target())


def build_graph(unit: Unit, pipeline: ir.Pipeline) -> None:
    """Fills the pipeline's tables, conditionals and init from the pipeline's body."""
    graph = Graph(unit, pipeline, {t.name: t for t in pipeline.tables})
    _mark_callers(graph)
    first = _sequence(graph, pipeline.body, END)
    pipeline.init = first.resolve()
    for conditional, true_next, false_next in graph.conditionals:
        conditional.true_next = true_next.resolve()
        conditional.false_next = false_next.resolve()
    for table, following in graph.calls:
        name = following.resolve()
        table.next_tables = {table.actions[0].name: name}
        table.base_default_next = name
    for name, table in graph.tables.items():
        if name in graph.sites:
            _connect_table(graph, table, graph.sites[name])
        else:
            # in code that is never reached; the control plane still knows it
            table.next_tables = {action.name: None for action in table.actions}
    pipeline.conditionals.reverse()
    _refuse_cycles(graph)


def _sequence(graph: Graph, body: list[ir.Statement], following: Target) -> Target:
    """Adds the nodes of the body and returns a target that leads to the first one. After the body,
    control goes to `following`."""
    for group in reversed(_groups(graph.unit, _reachable(body))):
        following = _group(graph, group, following)
    return following


def _reachable(body: list[ir.Statement]) -> list[ir.Statement]:
    """Returns the body without the statements between a jump and the next label, which are never
    executed."""
    kept: list[ir.Statement] = []
    dead = False
    for statement in body:
        dead = dead and not isinstance(statement, ir.Label)
        if not dead:
            kept.append(statement)
        dead = dead or isinstance(statement, (ir.Goto, ir.Exit))
    return kept


def _groups(unit: Unit, body: list[ir.Statement]) -> list[list[ir.Statement]]:
    """Cuts the body into groups of consecutive statements. A group becomes one action. A statement
    that cannot be part of an action is a group by itself."""
    groups: list[list[ir.Statement]] = []
    run: list[ir.Statement] = []
    for statement in body:
        if _has_apply(statement):
            groups += [*_split(unit, run, body), [statement]]
            run = []
        else:
            run.append(statement)
    return [*groups, *_split(unit, run, body)]


def _has_apply(statement: ir.Statement) -> bool:
    return any(isinstance(s, ir.Apply) for s in ir.flatten([statement]))


def _split(
    unit: Unit, run: list[ir.Statement], body: list[ir.Statement]
) -> list[list[ir.Statement]]:
    """Cuts a run of statements without tables at jumps that leave the run, and at labels to which
    jumps come from outside the run."""
    if not run:
        return []
    inside = {id(s) for s in ir.flatten(run)}
    elsewhere = {
        s.label for s in ir.flatten(body) if isinstance(s, ir.Goto) and id(s) not in inside
    }
    labels = {s.label for s in ir.flatten(run) if isinstance(s, ir.Label)}
    jumps = {s.label for s in ir.flatten(run) if isinstance(s, ir.Goto)}
    if jumps <= labels and not labels & elsewhere:
        return [run]
    return _cut(contain(unit, run), (jumps - labels) | (labels & elsewhere))


def _cut(run: list[ir.Statement], leaving: set[int]) -> list[list[ir.Statement]]:
    """Cuts a run into groups. Statements that have or jump to a label of `leaving` stand alone, and
    so do statements that jump over them. A run that only jumps within itself, such as a loop, stays
    together."""
    groups: list[list[ir.Statement]] = []
    current: list[ir.Statement] = []
    alone = _standing_alone(run, leaving)
    for index, statement in enumerate(run):
        if index in alone:
            groups += [current] if current else []
            groups.append([statement])
            current = []
        else:
            current.append(statement)
    return [*groups, *([current] if current else [])]


def _standing_alone(run: list[ir.Statement], leaving: set[int]) -> set[int]:
    """Returns the indices of the statements that must stand alone. The set grows until no jump
    leads from one group into another."""
    touched = [_labels_of(statement) for statement in run]
    places: dict[int, list[int]] = {}
    for index, labels in enumerate(touched):
        for label in labels:
            places.setdefault(label, []).append(index)
    cut: set[int] = set()
    found = set(leaving)
    while found - cut:
        cut |= found
        alone = {i for i, labels in enumerate(touched) if labels & cut}
        spans = {label: (at[0], at[-1]) for label, at in places.items() if len(at) > 1}
        found = {n for n, (low, high) in spans.items() if any(low <= i <= high for i in alone)}
    return {i for i, labels in enumerate(touched) if labels & cut}


def _labels_of(statement: ir.Statement) -> set[int]:
    """Returns the labels that a statement has or to which it jumps. Labels of jumps that stay
    within the statement are left out."""
    inside = list(ir.flatten([statement]))
    jumps = {s.label for s in inside if isinstance(s, ir.Goto)}
    labels = {s.label for s in inside if isinstance(s, ir.Label)}
    return jumps ^ labels


def _group(graph: Graph, group: list[ir.Statement], following: Target) -> Target:
    statement = group[0]
    if len(group) == 1 and isinstance(statement, (ir.Label, ir.Goto, ir.Exit)):
        return _jump(graph, statement, following)
    if isinstance(statement, ir.Apply):
        return _apply(graph, statement, following)
    jumps = {s.label for s in ir.flatten(group) if isinstance(s, ir.Goto)}
    own = {s.label for s in ir.flatten(group) if isinstance(s, ir.Label)}
    if _has_apply(statement) or not jumps <= own:
        assert isinstance(statement, ir.If) and len(group) == 1
        return _conditional(graph, statement, following)
    return _call(graph, group, following)


def _jump(graph: Graph, statement: ir.Statement, following: Target) -> Target:
    if isinstance(statement, ir.Goto):
        return graph.label(statement.label)
    if isinstance(statement, ir.Exit):
        return END
    assert isinstance(statement, ir.Label)
    target = graph.label(statement.label)
    target.link = following
    return target


def _conditional(graph: Graph, statement: ir.If, following: Target) -> Target:
    then = _sequence(graph, statement.then, following)
    otherwise = _sequence(graph, statement.otherwise, following)
    name = graph.unit.names.unique("node")
    node = ir.Conditional(name, statement.condition, statement.position)
    graph.pipeline.conditionals.append(node)
    graph.conditionals.append((node, then, otherwise))
    return Target(name)


def _call(graph: Graph, group: list[ir.Statement], following: Target) -> Target:
    """Adds a table without keys, whose only action executes the group, and returns a target that
    leads to the table. If the group does nothing, returns `following` and adds no table."""
    if not assemble(group):
        return following
    where = group[0].position
    name = graph.unit.names.unique(_action_name(where))
    action = ir.Action(name, [], [], where, group)
    graph.unit.program.actions.append(action)
    table = ir.Table(f"tbl_{name}", where, [], [action], default_action=action)
    table.default_constant = True
    graph.pipeline.tables.append(table)
    graph.calls.append((table, following))
    return Target(table.name)


def _action_name(where: Position) -> str:
    stem = PurePath(where.file).stem or "program"
    return f"{''.join(c if c.isalnum() else '_' for c in stem)}{where.line}"


def _apply(graph: Graph, statement: ir.Apply, following: Target) -> Target:
    # switch labels that share a body share its nodes
    firsts: dict[int, Target] = {}
    branches: dict[str, Target] = {}
    for name, body in statement.branches.items():
        if id(body) not in firsts:
            firsts[id(body)] = _sequence(graph, body, following)
        branches[name] = firsts[id(body)]
    default = _sequence(graph, statement.default, following)
    if statement.kind == "hit":
        default = branches["miss"]
    graph.sites.setdefault(statement.table, []).append(Site(statement, branches, default))
    return Target(statement.table)


def _connect_table(graph: Graph, table: ir.Table, sites: list[Site]) -> None:
    """Connects a table to its successors. If the table is applied in several places, conditionals
    after the table test from which place it was applied."""
    kinds = {site.apply.kind for site in sites}
    if kinds >= {"hit", "action"}:
        graph.unit.diagnostics.unsupported(
            sites[1].apply.position,
            f"table {table.name} applied for its hit at one place and its action at another",
        )
    keys = ["__HIT__", "__MISS__"] if "hit" in kinds else [a.name for a in table.actions]
    tests: dict[tuple[str | None, ...], str | None] = {}

    def lead(key: str) -> str | None:
        leads = tuple(_lead(site, key) for site in sites)
        if leads not in tests:
            tests[leads] = _dispatch(graph, sites, leads)
        return tests[leads]

    table.next_tables = {key: lead(key) for key in keys}
    table.base_default_next = lead("__MISS__" if "hit" in kinds else "")


def _lead(site: Site, key: str) -> str | None:
    name = {"__HIT__": "hit", "__MISS__": "miss"}.get(key, key)
    return site.branches.get(name, site.default).resolve()


def _dispatch(graph: Graph, sites: list[Site], leads: tuple[str | None, ...]) -> str | None:
    following = leads[-1]
    if all(lead == following for lead in leads):
        return following
    for site, lead in zip(reversed(sites[:-1]), reversed(leads[:-1]), strict=True):
        caller = site.apply.caller
        assert caller is not None
        condition = ir.Op("==", *caller)
        node = ir.Conditional(graph.unit.names.unique("node"), condition, site.apply.position)
        node.true_next, node.false_next = lead, following
        graph.pipeline.conditionals.append(node)
        following = node.name
    return following


def _mark_callers(graph: Graph) -> None:
    """Gives each table that is applied in several places a variable that tells it from which place
    it is applied."""
    places: dict[str, list[tuple[list[ir.Statement], ir.Apply]]] = {}
    for body, apply in _applications(graph.pipeline.body, set()):
        places.setdefault(apply.table, []).append((body, apply))
    for applications in places.values():
        if len(applications) < 2:
            continue
        caller = graph.unit.storage.allocate(
            "caller", types.Bits(CALLER_BITS), applications[0][1].position
        )
        assert isinstance(caller, Scalar) and isinstance(caller.ref, ir.FieldRef)
        for number, (body, apply) in enumerate(applications):
            this_place = (caller.ref, ir.Const(number, CALLER_BITS))
            apply.caller = this_place
            index = next(i for i, statement in enumerate(body) if statement is apply)
            body.insert(index, ir.Primitive(apply.position, "assign", this_place))


def _applications(
    body: list[ir.Statement], seen: set[int]
) -> Iterator[tuple[list[ir.Statement], ir.Apply]]:
    if id(body) in seen:
        return
    seen.add(id(body))
    for statement in body:
        if isinstance(statement, ir.Apply):
            yield body, statement
        for below in ir.bodies(statement):
            yield from _applications(below, seen)


def _refuse_cycles(graph: Graph) -> None:
    """Refuses programs in which a packet could reach a table twice. BMv2 applies a table at most
    once on any path through the pipeline."""
    following: dict[str, list[str]] = {}
    for table in graph.pipeline.tables:
        following[table.name] = [n for n in table.next_tables.values() if n is not None]
    for node in graph.pipeline.conditionals:
        following[node.name] = [n for n in (node.true_next, node.false_next) if n is not None]
    for name, sites in graph.sites.items():
        if name in _reached(following, following[name]):
            graph.unit.diagnostics.unsupported(
                sites[-1].apply.position, f"applying table {name} again after it was applied"
            )


def _reached(following: dict[str, list[str]], start: list[str]) -> set[str]:
    seen: set[str] = set()
    pending = list(start)
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            pending.extend(following[name])
    return seen
