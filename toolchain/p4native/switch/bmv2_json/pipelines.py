"""Reads pipelines: tables with their constant entries, conditionals, action calls, and the flow."""

from __future__ import annotations

from p4native.switch.bmv2_json.calculations import read_calculation
from p4native.switch.bmv2_json.expressions import Reader, is_variable
from p4native.switch.bmv2_json.scope import Scope, claim
from p4native.switch.expression import FieldOf, HeaderRef
from p4native.switch.model import (
    Action,
    ActionCall,
    Conditional,
    ConstEntry,
    Control,
    Key,
    Meter,
    Profile,
    Table,
)
from p4native.switch.node import Node

KINDS_OF_TYPE = {
    "exact": {"exact", "valid"},
    "lpm": {"exact", "valid", "lpm"},
    "ternary": {"exact", "valid", "lpm", "ternary"},
    "range": {"exact", "valid", "lpm", "ternary", "range"},
}
MAX_TABLE_SIZE = 0xFFFFFF
MAX_KEY_BYTES = 16384
PRIORITY_LIMIT = 2**31 - 1


class PipelineReader:
    """A reader of one pipeline. tables: the tables read so far, after which the numbering
    continues."""

    def __init__(self, scope: Scope, tables: dict[str, Table]) -> None:
        self.scope = scope
        self.tables = tables

    def read(self, node: Node) -> Control:
        control = Control(node["name"].text(), None, {})
        places: dict[str, Node] = {}
        for item in node.list("action_profiles"):
            self.read_profile(item)
        for item in node.list("tables"):
            table = self.read_table(item)
            claim(self.tables, item, table.name, table)
            claim(control.nodes, item, table.name, table)
            places[table.name] = item
        for item in node.list("conditionals"):
            conditional = self.read_conditional(item)
            claim(control.nodes, item, conditional.name, conditional)
            places[conditional.name] = item
        for item in node.list("action_calls"):
            call = self.read_action_call(item)
            claim(control.nodes, item, call.name, call)
            places[call.name] = item
        first = node.get("init_table")
        control.first = first.text() if first else None
        if first and control.first not in control.nodes:
            raise first.error(f"no node is called '{control.first}'")
        check_flow(control, places)
        return control

    def read_profile(self, node: Node) -> None:
        name = node["name"].text()
        selector = None
        if node.get("selector"):
            selector = read_calculation(node["selector"], f"{name} (selector)", self.scope)
        profile = Profile(name, len(self.scope.profiles), node["id"].integer(0, 2**31 - 1))
        profile.selector = selector
        claim(self.scope.profiles, node, name, profile)

    def read_conditional(self, node: Node) -> Conditional:
        condition = Reader(self.scope).boolean(node["expression"])
        yes, no = (next_name(node.get(k)) for k in ("true_next", "false_next"))
        return Conditional(node["name"].text(), condition, yes, no, node.source())

    def read_action_call(self, node: Node) -> ActionCall:
        action = self.action(node["action_id"])
        if action.params:
            raise node["action_id"].error(f"action '{action.name}' needs arguments")
        return ActionCall(node["name"].text(), action, next_name(node.get("next_node")))

    def action(self, node: Node) -> Action:
        action = self.scope.actions.get(node.integer(0, 2**31 - 1))
        if action is None:
            raise node.error(f"no action has id {node.value}")
        return action

    def read_table(self, node: Node) -> Table:
        profile = self.read_implementation(node)
        match_type = node["match_type"].text()
        if match_type not in KINDS_OF_TYPE:
            raise node["match_type"].error("must be exact, lpm, ternary or range")
        table = Table(
            name=node["name"].text(),
            index=len(self.tables),
            id=node["id"].integer(0, 2**31 - 1),
            match_type=match_type,
            keys=tuple(self.read_key(n, match_type) for n in node.list("key")),
            actions=self.read_table_actions(node),
            max_size=0,
            const_entries=node.get("entries") is not None,
            const_default=False,
            const_default_action=False,
            direct_counters=node.flag("with_counters"),
            support_timeout=node.flag("support_timeout"),
            path=node.path,
            source=node.source(),
            meter=self.read_meter(node),
            profile=profile,
        )
        if profile:
            share_actions(node, profile, table.actions)
        if table.key_bytes > MAX_KEY_BYTES:
            raise node["key"].error(f"has more than {MAX_KEY_BYTES} bytes")
        if sum(k.kind == "lpm" for k in table.keys) > 1:
            raise node["key"].error("has more than one lpm field")
        self.read_next(node, table)
        self.read_default(node, table)
        self.read_entries(node, table)
        return table

    def read_implementation(self, node: Node) -> Profile | None:
        """Returns the action profile of an indirect table, or None for a table that has actions
        itself."""
        kind = node["type"].text()
        if kind == "simple":
            return None
        if kind not in ("indirect", "indirect_ws"):
            raise node["type"].error("must be simple, indirect or indirect_ws")
        profile = self.scope.find(node["action_profile"], "action profile", self.scope.profiles)
        if kind == "indirect_ws" and profile.selector is None:
            raise node["type"].error(f"action profile '{profile.name}' has no selector")
        for key in ("default_entry", "entries"):
            if node.get(key):
                raise node[key].error("a table with an action profile cannot have it")
        return profile

    def read_meter(self, node: Node) -> Meter | None:
        name = node.get("direct_meters")
        return self.scope.find(name, "direct meter", self.scope.direct_meters) if name else None

    def read_key(self, node: Node, match_type: str) -> Key:
        kind = node["match_type"].text()
        if kind not in KINDS_OF_TYPE[match_type]:
            raise node["match_type"].error(f"'{kind}' cannot be in a table of type {match_type}")
        target = node["target"]
        if kind == "valid":
            header = self.scope.header(target)
            value = FieldOf(target.path, HeaderRef(target.path, header), None)
            default_name = header.name
        else:
            value = Reader(self.scope).field(target)
            default_name = ".".join(str(part) for part in target.value)
            if is_variable(value):
                raise target.error("a field of variable width cannot be a key")
        bits = value.field.bits if value.field else 1
        name = node.get("name")
        mask = node.get("mask")
        mask_value = int.from_bytes(mask.hex_bytes((bits + 7) // 8), "big") if mask else None
        return Key(name.text() if name else default_name, kind, bits, value, mask_value)

    def read_table_actions(self, node: Node) -> tuple[Action, ...]:
        if node.get("action_ids"):
            return tuple(self.action(n) for n in node["action_ids"].elements())
        by_name = {a.name: a for a in self.scope.actions.values()}
        return tuple(self.scope.find(n, "action", by_name) for n in node["actions"].elements())

    def read_next(self, node: Node, table: Table) -> None:
        following = node["next_tables"].members()
        base = node.get("base_default_next")
        table.base_default_next = next_name(base)
        names = {k: v.value for k, v in following.items()}
        for item in following.values():
            if item.value is not None:
                item.text()
        if "__HIT__" in names or "__MISS__" in names:
            if set(names) != {"__HIT__", "__MISS__"}:
                raise node["next_tables"].error("must have __HIT__ and __MISS__ and nothing else")
            table.hit_miss = names["__HIT__"], names["__MISS__"]
            return
        for action in table.actions:
            if action.name not in names:
                raise node["next_tables"].error(f"lacks action '{action.name}'")
            table.next_by_action[action.index] = names[action.name]

    def read_default(self, node: Node, table: Table) -> None:
        entry = node.get("default_entry")
        if entry is None:
            return
        action = self.action(entry["action_id"])
        if action not in table.actions:
            raise entry["action_id"].error(f"'{action.name}' is not an action of the table")
        table.const_default_action = entry.flag("action_const")
        if entry.get("action_data"):
            table.default_action = action
            table.default_args = read_args(entry["action_data"], action)
            table.const_default = entry.flag("action_entry_const")
        elif table.const_default_action:
            raise entry.error("lacks 'action_data'")

    def read_entries(self, node: Node, table: Table) -> None:
        entries = node.get("entries")
        if entries is None:
            table.max_size = node["max_size"].integer(0, MAX_TABLE_SIZE)
            return
        if not table.keys:
            raise entries.error("a table without a key has no entries")
        nodes = entries.elements()
        table.entries = tuple(self.read_entry(n, table) for n in nodes)
        table.max_size = len(nodes)
        seen: set[tuple[bytes, bytes, int]] = set()
        for item, entry in zip(nodes, table.entries, strict=True):
            identity = entry.key, entry.mask, entry.priority
            if identity in seen:
                raise item.error("equals an earlier entry")
            seen.add(identity)

    def read_entry(self, node: Node, table: Table) -> ConstEntry:
        parts = node["match_key"].elements(len(table.keys))
        matches = [read_match(n, k) for n, k in zip(parts, table.keys, strict=True)]
        action_node = node["action_entry"]
        action = self.action(action_node["action_id"])
        if action not in table.actions:
            raise action_node["action_id"].error(f"'{action.name}' is not an action of the table")
        priority = 0
        if table.match_type in ("ternary", "range"):
            number = node.get("priority")
            # BMv2: the smallest number wins; pipeline.h: the largest.
            priority = -number.integer(-PRIORITY_LIMIT, PRIORITY_LIMIT) if number else 0
        return ConstEntry(
            b"".join(m[0] for m in matches),
            b"".join(m[1] for m in matches),
            priority,
            action,
            read_args(action_node["action_data"], action),
        )


def share_actions(node: Node, profile: Profile, actions: tuple[Action, ...]) -> None:
    """Adds the actions of a table to the table's action profile, by name. In the JSON, each table
    may have a separate copy of an action."""
    for action in actions:
        known = profile.action(action.name)
        if known is None:
            profile.actions += (action,)
        elif known.params != action.params:
            raise node.error(f"action '{action.name}' differs from that of '{profile.name}'")


def next_name(node: Node | None) -> str | None:
    return node.text() if node else None


def read_args(node: Node, action: Action) -> tuple[int, ...]:
    """Reads the arguments of an action. A negative argument is converted to two's complement."""
    values = []
    for item, param in zip(node.elements(len(action.params)), action.params, strict=True):
        value = item.hex_integer()
        if not -(1 << param.bits - 1) <= value < 1 << param.bits:
            raise item.error(f"does not fit the {param.bits} bits of '{param.name}'")
        values.append(value % (1 << param.bits))
    return tuple(values)


def read_match(node: Node, key: Key) -> tuple[bytes, bytes]:
    """Reads one field of a constant entry: its value and its mask (or upper end), cut to the
    field's width."""
    if node["match_type"].text() != key.kind:
        raise node["match_type"].error(f"must be '{key.kind}'")
    full = (1 << key.bits) - 1
    static = full if key.mask is None else key.mask & full
    if key.kind == "valid":
        value, mask = int(node["key"].boolean()), full
    elif key.kind == "range":
        value, mask = field_value(node["start"], key), field_value(node["end"], key)
        if value > mask:
            raise node.error("the range's start is after its end")
        return value.to_bytes(key.bytes, "big"), mask.to_bytes(key.bytes, "big")
    elif key.kind == "lpm":
        length = node["prefix_length"].integer(0, key.bits)
        value, mask = field_value(node["key"], key), full - (full >> length)
    elif key.kind == "ternary":
        value, mask = field_value(node["key"], key), field_value(node["mask"], key)
    else:
        value, mask = field_value(node["key"], key), full
    value &= mask & static
    return value.to_bytes(key.bytes, "big"), mask.to_bytes(key.bytes, "big")


def field_value(node: Node, key: Key) -> int:
    return int.from_bytes(node.hex_bytes(key.bytes), "big") & ((1 << key.bits) - 1)


def following(item: Table | Conditional | ActionCall) -> list[str | None]:
    """Returns the names of the nodes that may come after a node."""
    if isinstance(item, Conditional):
        return [item.true_next, item.false_next]
    if isinstance(item, ActionCall):
        return [item.next]
    return [*(item.hit_miss or ()), *item.next_by_action.values(), item.base_default_next]


def check_flow(control: Control, places: dict[str, Node]) -> None:
    """Checks that every next node exists and that no node can be reached from itself. Every packet
    therefore comes to an end."""
    for name, item in control.nodes.items():
        for other in following(item):
            if other is not None and other not in control.nodes:
                raise places[name].error(f"the next node '{other}' does not exist")
    waiting = dict.fromkeys(control.nodes, 0)
    for item in control.nodes.values():
        for other in set(following(item)) - {None}:
            waiting[other] += 1  # type: ignore[index]
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        for other in set(following(control.nodes[ready.pop()])) - {None}:
            waiting[other] -= 1  # type: ignore[index]
            if not waiting[other]:  # type: ignore[index]
                ready.append(other)  # type: ignore[arg-type]
    for name, count in waiting.items():
        if count:
            raise places[name].error(f"the control flow leads back to '{name}'")
