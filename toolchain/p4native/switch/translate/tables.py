"""Translates tables: their shapes as constant data, and the code that applies them."""

from __future__ import annotations

from p4native.switch.expression import FieldOf, HeaderRef
from p4native.switch.model import Action, Key, Meter, Param, Profile, Table
from p4native.switch.translate.actions import ActionWriter
from p4native.switch.translate.calculations import call
from p4native.switch.translate.layout import Layout
from p4native.switch.translate.packing import Piece, write_pieces
from p4native.switch.translate.ranges import Range, Text
from p4native.switch.translate.steps import Steps
from p4native.switch.translate.writer import Writer, c_bytes, comment, u64

KINDS = {
    "exact": "MATCH_EXACT",
    "valid": "MATCH_EXACT",
    "lpm": "MATCH_LPM",
    "ternary": "MATCH_TERNARY",
    "range": "MATCH_RANGE",
}


def table_kind(table: Table) -> str:
    """Returns the kind of look-up for a table. A table of type lpm that has no lpm field uses an
    exact look-up."""
    if table.match_type == "lpm" and not any(k.kind == "lpm" for k in table.keys):
        return "exact"
    return table.match_type


def encode_args(params: tuple[Param, ...], args: tuple[int, ...]) -> bytes:
    return b"".join(a.to_bytes(p.bytes, "big") for p, a in zip(params, args, strict=True))


def write_shapes(layout: Layout, out: Writer) -> None:
    """Writes action_shapes[] and table_shapes[]."""
    for action in layout.program.actions:
        bits = ", ".join(str(p.bits) for p in action.params)
        if bits:
            out.line(f"static const uint16_t params_{action.index}[] = {{{bits}}};")
    with out.block("static const struct action_shape action_shapes[] =", "};"):
        for action in layout.program.actions:
            pointer = f"params_{action.index}" if action.params else "NULL"
            shape = f"{{{action.args_bytes}, {len(action.params)}, {pointer}}}"
            out.line(f"{shape}, /* {action.index} {comment(action.name)} */")
        out.line("{0},")
    out.line()
    for profile in layout.program.profiles.values():
        numbers = ", ".join(str(a.index) for a in profile.actions)
        out.line(f"static const uint32_t profile_actions_{profile.index}[] = {{{numbers or 0}}};")
    with out.block("static const struct profile_shape profile_shapes[] =", "};"):
        for profile in layout.program.profiles.values():
            args = max((a.args_bytes for a in profile.actions), default=0)
            selector = str(profile.selector is not None).lower()
            actions = f"{len(profile.actions)}, profile_actions_{profile.index}"
            out.line(f"{{{args}, {actions}, {selector}}}, /* {comment(profile.name)} */")
        out.line("{0},")
    for table in layout.program.tables.values():
        write_table_data(table, out)
    with out.block("static const struct table_shape table_shapes[] =", "};"):
        for table in layout.program.tables.values():
            write_shape(table, out)
        out.line("{0},")
    out.line()


def write_table_data(table: Table, out: Writer) -> None:
    index = table.index
    out.line(f"/* {comment(table.name)} */")
    offset = 0
    if table.keys:
        with out.block(f"static const struct key_field fields_{index}[] =", "};"):
            for key in table.keys:
                shape = f"{{{KINDS[key.kind]}, {key.bits}, {offset}}}"
                out.line(f"{shape}, /* {comment(key.name)} */")
                offset += key.bytes
    actions = ", ".join(str(a.index) for a in table.actions)
    out.line(f"static const uint32_t actions_{index}[] = {{{actions or 0}}};")
    if any(k.mask is not None for k in table.keys):
        masks = b"".join(static_mask(k).to_bytes(k.bytes, "big") for k in table.keys)
        array = ", ".join(f"{byte:#x}" for byte in masks)
        out.line(f"static const uint8_t static_mask_{index}[] = {{{array}}};")
    if table.entries:
        with out.block(f"static const struct const_entry entries_{index}[] =", "};"):
            for entry in table.entries:
                args = c_bytes(encode_args(entry.action.params, entry.args))
                match = f"{c_bytes(entry.key)}, {c_bytes(entry.mask)}"
                out.line(f"{{{match}, {args}, {entry.priority}, {entry.action.index}}},")
    out.line()


def static_mask(key: Key) -> int:
    full = (1 << key.bits) - 1
    return full if key.mask is None else key.mask & full


def table_args_bytes(table: Table) -> int:
    """Returns the number of bytes that an entry has for arguments. In a table with an action
    profile it is 0, because the arguments belong to the member."""
    return 0 if table.profile else max((a.args_bytes for a in table.actions), default=0)


def write_shape(table: Table, out: Writer) -> None:
    index = table.index
    default = table.default_action
    members = {
        "kind": KINDS[table_kind(table)],
        "const_entries": str(table.const_entries).lower(),
        "const_default": str(table.const_default).lower(),
        "const_default_action": str(table.const_default_action).lower(),
        "counters": str(table.direct_counters).lower(),
        "meters": str(table.meter is not None).lower(),
        "timeouts": str(table.support_timeout).lower(),
        "max_size": table.max_size,
        "key_bytes": table.key_bytes,
        "args_bytes": table_args_bytes(table),
        "fields": len(table.keys),
        "field": f"fields_{index}" if table.keys else "NULL",
        "static_mask": f"static_mask_{index}" if any(k.mask is not None for k in table.keys) else 0,
        "profile": table.profile.index if table.profile else -1,
        "actions": len(table.actions),
        "action": f"actions_{index}",
        "default_action": default.index if default else -1,
        "default_args": c_bytes(encode_args(default.params, table.default_args)) if default else 0,
        "entries": len(table.entries),
        "entry": f"entries_{index}" if table.entries else "NULL",
    }
    with out.block("", "},"):
        for name, value in members.items():
            out.line(f".{name} = {value},")


class TableApply:
    """A writer of the C that applies one table."""

    def __init__(self, layout: Layout, out: Writer, table: Table) -> None:
        self.layout = layout
        self.out = out
        self.table = table

    def write_constant(self, action: Action) -> None:
        """Writes a direct call of the action of a table that has no key and whose default action
        cannot change."""
        args = c_bytes(encode_args(action.params, self.table.default_args))
        self.out.line(f"{self.layout.function(action)}(p, k, s, (const uint8_t *){args});")

    def write_lookup(self) -> None:
        """Writes the code that finds the entry `e` (NULL on a miss), and then `action` and
        `args`."""
        out, table = self.out, self.table
        size = table.key_bytes
        out.line(f"struct table *t = &p->table[{table.index}];")
        out.line("struct entry *e = NULL;")
        out.line("const uint8_t *args = t->default_args;")
        out.line("int64_t action = t->default_action;")
        if table.profile:
            out.line("const struct member *member;")
        if table.keys:
            out.array("key", size)
            out.line()
            self.write_key()
            out.line(f"e = table_find_{table_kind(table)}(t, key, {size});")
        steps = Steps(self.layout, out)
        steps.key(table)
        steps.found(table)
        with out.block("if (e)"):
            out.line("action = e->action;")
            if not table.profile:
                out.line(f"args = entry_args({size}, e);")
            if table.support_timeout:
                out.line("e->hit = true;")
        self.write_resources()
        if table.profile:
            self.write_member(table.profile)
        out.line("(void)args;")

    def write_resources(self) -> None:
        """Writes the updates of the entry's counter and meter or, on a miss, of those of the
        default entry."""
        if not (self.table.direct_counters or self.table.meter):
            return
        with self.out.block("", "}"):
            self.out.line("struct entry *taken = e ? e : t->missed;")
            self.out.line()
            if self.table.direct_counters:
                self.out.line("taken->packets++;")
                self.out.line("taken->bytes += k->flow.ingress_length;")
            if self.table.meter:
                self.write_meter(self.table.meter)

    def write_meter(self, meter: Meter) -> None:
        """Writes the meter's color to its field, before the action runs. If a miss meets a default
        entry whose meter is not configured, the field keeps its value, as in BMv2."""
        assert meter.target
        units = "k->flow.ingress_length" if meter.bytes else "1"
        with self.out.block("if (e || entry_meter(t, taken)->configured)"):
            self.out.line(
                f"uint32_t colour = meter_execute(entry_meter(t, taken), {units}, p->now_us);"
            )
            self.out.line()
            writer = ActionWriter(self.layout, self.out)
            writer.assign(meter.target, Text("", "colour", Range(0, 2)))

    def write_member(self, profile: Profile) -> None:
        """Writes the code that replaces `action`, which holds the member or group of the entry, by
        the member's action, or by -1 if there is no member."""
        out = self.out
        chosen = "0"
        if profile.selector:
            chosen = f"action & PL_GROUP ? {call(profile.selector)} : 0"
        found = f"profile_find(&p->profile[{profile.index}], (uint32_t)action, {chosen})"
        out.line(f"member = action < 0 ? NULL : {found};")
        out.line("action = member ? (int64_t)member->action : -1;")
        out.line("if (member)")
        out.line("\targs = member->args;")

    def write_key(self) -> None:
        """Writes the code that gathers the key. Fields of invalid headers count as 0."""
        pieces = []
        for key in self.table.keys:
            assert isinstance(key.value, FieldOf)
            pieces += self.key_pieces(key, key.value)
        write_pieces(self.out, "key", pieces)

    def key_pieces(self, key: Key, value: FieldOf) -> list[Piece]:
        assert isinstance(value.header, HeaderRef)
        header = value.header.header
        member = f"k->{self.layout.member(header)}"
        if value.field is None:
            return [Piece(f"(uint64_t){member}.valid", 8)]
        access = f"{member}.{self.layout.field(header.type, value.field)}"
        if value.field.wide:
            return self.wide_pieces(key, access, None if header.metadata else member)
        text = f"(uint64_t){access}"
        if not header.metadata:
            text = f"({member}.valid ? {text} : 0)"
        if key.mask is not None:
            text = f"({text} & {u64(static_mask(key))})"
        return [Piece(text, 8 * key.bytes)]

    def wide_pieces(self, key: Key, access: str, header: str | None) -> list[Piece]:
        source = f"({header}.valid ? {access} : zeros)" if header else access
        if key.mask is None:
            return [Piece(source, 8 * key.bytes, wide=True)]
        name = self.out.temporary("b")
        mask = static_mask(key).to_bytes(key.bytes, "big")
        array = ", ".join(f"{byte:#x}" for byte in mask)
        self.out.line(f"static const uint8_t {name}_mask[{key.bytes}] = {{{array}}};")
        self.out.array(name, key.bytes)
        self.out.line(f"for (unsigned int i = 0; i < {key.bytes}; i++)")
        self.out.line(f"\t{name}[i] = ({source})[i] & {name}_mask[i];")
        return [Piece(name, 8 * key.bytes, wide=True)]
