"""Table entries of all kinds: keys, actions, priorities, defaults, what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from controller import Controller
from dialogue import (
    Step,
    between,
    delete,
    exact,
    group,
    insert,
    lpm,
    modify,
    optional,
    packet,
    ternary,
    tried,
)
from p4.v1 import p4runtime_pb2 as pb


@group
def exact_entries(c: Controller) -> Iterator[Step]:
    key = exact(1, b"\x05"), exact(2, b"\x01\x23")
    entry = c.entry("exact_table", *key, does=c.action("set", b"\x09", b"\x04\x56"))
    everything = pb.Entity(table_entry={})
    yield "read before", c.read(c.entry("exact_table"))
    yield "modify before", c.write(modify(entry))
    yield "delete before", c.write(delete(entry))
    yield "insert", c.write(insert(entry))
    yield "insert again", c.write(insert(entry))
    yield "read", c.read(c.entry("exact_table"))
    yield "read one", c.read(c.entry("exact_table", *key))
    yield "read none", c.read(c.entry("exact_table", exact(1, b"\x06"), exact(2, b"\x01")))
    yield "read half a key", c.read(c.entry("exact_table", key[0]))
    yield "read all tables", c.read(everything)
    yield "packets", c.packets(packet(1, 5, d=0x123), packet(1, 6, d=0x123))
    cookies = {"metadata": b"abc", "controller_metadata": 12}
    changed = c.entry("exact_table", *key, does=c.action("keep"), **cookies)
    yield "modify", c.write(modify(changed))
    yield "read cookies", c.read(c.entry("exact_table"))
    yield "modify without action", c.write(modify(c.entry("exact_table", *key)))
    yield "packet", c.packets(packet(1, 5, d=0x123))
    yield (
        "other order",
        c.write(modify(c.entry("exact_table", key[1], key[0], does=c.action("keep")))),
    )
    yield "delete", c.write(delete(c.entry("exact_table", *key)))
    yield "delete again", c.write(delete(c.entry("exact_table", *key)))


@group
def byte_strings(c: Controller) -> Iterator[Step]:
    def entry(a: bytes, d: bytes, *args: bytes) -> Any:
        does = c.action("set", *args) if args else c.action("keep")
        return c.entry("exact_table", exact(1, a), exact(2, d), does=does)

    yield (
        "leading zeros",
        c.write(insert(entry(b"\0\0\x07", b"\0\0\x01\x23", b"\0\x08", b"\0\0\x09"))),
    )
    yield "read shortest", c.read(c.entry("exact_table"))
    yield "the same in short", c.write(insert(entry(b"\x07", b"\x01\x23")))
    yield "empty key", tried(c, entry(b"", b"\x01"))
    yield "empty parameter", tried(c, entry(b"\x01", b"\x01", b"", b"\x01"))
    yield "too wide by bytes", tried(c, entry(b"\x01\x00", b"\x01"))
    yield "too wide by bits", tried(c, entry(b"\x01", b"\x10\x00"))
    yield "parameter too wide", tried(c, entry(b"\x01", b"\x01", b"\x01", b"\x10\x00"))
    yield "parameter too long", tried(c, entry(b"\x01", b"\x01", b"\x01\x01", b"\x01"))
    yield "zero", c.write(insert(entry(b"\0", b"\0")))
    yield "read", c.read(c.entry("exact_table"))


@group
def wrong_entries(c: Controller) -> Iterator[Step]:
    key = exact(1, b"\x05"), exact(2, b"\x01")
    keep = c.action("keep")

    yield "no table", tried(c, pb.Entity(table_entry={}))
    yield "unknown table", tried(c, pb.Entity(table_entry={"table_id": 0x02000001}))
    yield (
        "an id of an action",
        tried(c, pb.Entity(table_entry={"table_id": c.id("actions", "set")})),
    )
    yield "no kind", tried(c, c.entry("exact_table", *key, does=keep), "UNSPECIFIED")
    yield "no entity", tried(c, pb.Entity())
    yield "no action", tried(c, c.entry("exact_table", *key))
    yield "a field missing", tried(c, c.entry("exact_table", key[0], does=keep))
    yield "a field twice", tried(c, c.entry("exact_table", *key, key[0], does=keep))
    yield "a field twice, none missing", tried(c, c.entry("exact_table", key[0], key[0], does=keep))
    yield "an unknown field", tried(c, c.entry("exact_table", key[0], exact(9, b"\x01"), does=keep))
    yield (
        "another kind of match",
        tried(c, c.entry("exact_table", key[0], lpm(2, b"\x01", 12), does=keep)),
    )
    yield (
        "no match value",
        tried(c, c.entry("exact_table", key[0], pb.FieldMatch(field_id=2), does=keep)),
    )
    yield "a priority", tried(c, c.entry("exact_table", *key, does=keep, priority=3))
    yield "a negative priority", tried(c, c.entry("exact_table", *key, does=keep, priority=-1))
    yield "action 0", tried(c, c.entry("exact_table", *key, does=pb.Action()))
    yield "an action of others", tried(c, c.entry("exact_table", *key, does=c.action("paint")))
    yield (
        "an unknown action",
        tried(c, c.entry("exact_table", *key, does=pb.Action(action_id=0x01000001))),
    )
    yield (
        "a parameter missing",
        tried(c, c.entry("exact_table", *key, does=c.action("set", b"\x01"))),
    )
    more = c.action("set", b"\x01", b"\x02", b"\x03")
    yield "a parameter more", tried(c, c.entry("exact_table", *key, does=more))
    twice = c.action("set", b"\x01", b"\x02")
    twice.params[1].param_id = 1
    yield "a parameter twice", tried(c, c.entry("exact_table", *key, does=twice))
    yield (
        "a default-only action",
        tried(c, c.entry("exact_table", *key, does=c.action("only_default"))),
    )
    yield "a member", tried(c, c.entry("exact_table", *key, does={"action_profile_member_id": 1}))
    yield (
        "an action set",
        tried(c, c.entry("exact_table", *key, does={"action_profile_action_set": {}})),
    )
    yield "a timeout", tried(c, c.entry("exact_table", *key, does=keep, idle_timeout_ns=1))
    hit = c.entry("exact_table", *key, does=keep)
    hit.table_entry.time_since_last_hit.elapsed_ns = 1
    yield "time_since_last_hit", tried(c, hit)
    metered = c.entry("exact_table", *key, does=keep)
    metered.table_entry.meter_config.cir = 1
    yield "a meter where there is none", tried(c, metered)
    yield "nothing was inserted", c.read(c.entry("exact_table"))
    for n in range(9):
        row = c.entry("exact_table", exact(1, bytes([n])), exact(2, b"\x01"), does=keep)
        yield f"row {n} of 8", c.write(insert(row))
    yield "eight rows", len(c.read(c.entry("exact_table")))


@group
def batches(c: Controller) -> Iterator[Step]:
    def row(n: int, action: str = "keep") -> Any:
        return c.entry(
            "exact_table", exact(1, bytes([n])), exact(2, b"\x01"), does=c.action(action)
        )

    yield "empty", c.write()
    yield "all right", c.write(insert(row(1)), insert(row(2)), modify(row(1)), delete(row(2)))
    yield "one wrong", c.write(insert(row(3)), insert(row(1)), insert(row(4)))
    yield "all wrong", c.write(insert(row(1)), delete(row(9)))
    yield "in order", c.write(insert(row(5)), delete(row(5)), insert(row(5)), delete(row(6)))
    yield "read", c.read(c.entry("exact_table"))


@group
def lpm_entries(c: Controller) -> Iterator[Step]:
    def row(*match: Any, a: int = 1) -> Any:
        return c.entry("lpm_table", *match, does=c.action("set", bytes([a]), b"\x01"))

    yield "8", c.write(insert(row(lpm(1, b"\x0a\0\0\0", 8), a=8)))
    yield "24", c.write(insert(row(lpm(1, b"\x0a\1\2\0", 24), a=24)))
    yield "32", c.write(insert(row(lpm(1, b"\x0a\1\2\3", 32), a=32)))
    yield "0", c.write(insert(row(lpm(1, b"\0", 0))))
    yield "33", c.write(insert(row(lpm(1, b"\x0a\1\2\3", 33))))
    yield "negative", c.write(insert(row(lpm(1, b"\x0a\1\2\3", -1))))
    yield "bits beyond", c.write(insert(row(lpm(1, b"\x0a\1\2\3", 24))))
    yield "omitted", c.write(insert(row(a=99)))
    yield "omitted again", c.write(insert(row(a=99)))
    ways = [0x0A010203, 0x0A010204, 0x0A020304, 0x0B000000]
    yield "packets", c.packets(*(packet(2, c=way) for way in ways))
    yield "read", c.read(c.entry("lpm_table"))
    yield "delete omitted", c.write(delete(c.entry("lpm_table")))
    yield "packet", c.packets(packet(2, c=0x0B000000))
    default = c.entry("lpm_table", does=c.action("keep"), is_default_action=True)
    yield "const default", c.write(modify(default))


@group
def ternary_entries(c: Controller) -> Iterator[Step]:
    def row(*match: Any, a: int = 1, priority: int = 10) -> Any:
        does = c.action("set", bytes([a]), b"\x01")
        return c.entry("ternary_table", *match, does=does, priority=priority)

    e = exact(4, b"\x01")
    high = ternary(1, b"\x80\0\0\0", b"\x80\0\0\0")
    low = ternary(1, b"\x01", b"\xff")
    yield "no priority", c.write(insert(row(e, priority=0)))
    yield "negative priority", tried(c, row(e, priority=-3))
    yield "everything", c.write(insert(row(e, a=10, priority=1)))
    yield "high", c.write(insert(row(high, e, a=11, priority=5)))
    yield "low", c.write(insert(row(low, e, a=12, priority=6)))
    yield "range", c.write(insert(row(between(2, b"\x10", b"\x20"), e, a=13, priority=7)))
    yield "optional", c.write(insert(row(optional(3, b"\x33"), e, a=14, priority=8)))
    yield "same key, other priority", c.write(insert(row(high, e, a=15, priority=2)))
    yield "same key and priority", c.write(insert(row(high, e, a=16, priority=5)))
    tests = [(0, 0, 0), (0, 0, 0x80000000), (0, 0, 0x80000001), (0, 0x10, 0x80000001)]
    tests += [(0, 0x20, 1), (0, 0x21, 1), (0x33, 0x20, 1), (0x34, 0, 2)]
    yield "packets", c.packets(*(packet(3, a, b, value, e=1) for a, b, value in tests))
    yield "miss", c.packets(packet(3, e=2))
    yield "mask 0", tried(c, row(ternary(1, b"\0", b"\0"), e))
    yield "value beyond mask", tried(c, row(ternary(1, b"\3", b"\1"), e))
    yield "no mask", tried(c, row(ternary(1, b"\1", b""), e))
    yield "full range", tried(c, row(between(2, b"\0", b"\xff\xff"), e))
    yield "range upside down", tried(c, row(between(2, b"\2", b"\1"), e))
    yield "range of one", c.write(insert(row(between(2, b"\2", b"\2"), e, priority=20)))
    yield "an empty optional", tried(c, row(optional(3, b""), e))
    yield "exact missing", tried(c, row(high))
    yield "read", c.read(c.entry("ternary_table"))
    yield "read by key", c.read(row(high, e, priority=5))
    yield "modify", c.write(modify(row(high, e, a=17, priority=5)))
    yield "modify, other priority", c.write(modify(row(high, e, a=17, priority=55)))
    yield "delete", c.write(delete(row(low, e, priority=6)))
    yield "packets again", c.packets(*(packet(3, a, b, value, e=1) for a, b, value in tests))
    mixed = c.entry("mixed_table", lpm(2, b"\x0a\0\0\0", 8), does=c.action("keep"), priority=3)
    yield "lpm beside ternary", c.write(insert(mixed))
    yield "read mixed", c.read(c.entry("mixed_table"))


@group
def defaults(c: Controller) -> Iterator[Step]:
    def default(table: str, action: Any = None, **fields: Any) -> Any:
        return c.entry(table, does=action, is_default_action=True, **fields)

    for table in (
        "exact_table",
        "lpm_table",
        "keyless",
        "ternary_table",
        "fixed",
        "selected",
        "profiled",
    ):
        yield f"read {table}", c.read(default(table))
    changed = default("exact_table", c.action("set", b"\x55", b"\x05"), metadata=b"x")
    yield "modify", c.write(modify(changed))
    yield "read", c.read(default("exact_table"))
    yield "packet", c.packets(packet(1, 200))
    yield "reset", c.write(modify(default("exact_table")))
    yield "read reset", c.read(default("exact_table"))
    yield "default-only", c.write(modify(default("exact_table", c.action("only_default"))))
    yield "packet of default-only", c.packets(packet(1, 200))
    yield "table-only", c.write(modify(default("exact_table", c.action("only_entries"))))
    yield "insert", c.write(insert(default("exact_table", c.action("keep"))))
    yield "delete", c.write(delete(default("exact_table")))
    with_key = c.entry("exact_table", exact(1, b"\1"), exact(2, b"\1"), is_default_action=True)
    yield "with a key", c.write(modify(with_key))
    yield "with a priority", c.write(modify(default("ternary_table", c.action("keep"), priority=1)))
    yield "with a timeout", c.write(modify(default("idle", c.action("keep"), idle_timeout_ns=5)))
    c.write(modify(default("idle")))
    yield "of an action profile", c.write(modify(default("selected", c.action("keep"))))
    yield "reset of an action profile", c.write(modify(default("selected")))
    yield "keyless", c.write(modify(default("keyless", c.action("set", b"\x44", b"\4"))))
    yield "packet of keyless", c.packets(packet(15))
    yield "an entry of keyless", c.write(insert(c.entry("keyless", does=c.action("keep"))))
    yield "all defaults", c.read(pb.Entity(table_entry={"is_default_action": True}))


@group
def const_entries(c: Controller) -> Iterator[Step]:
    keep = c.action("keep")
    yield "read", c.read(c.entry("fixed"))
    yield "insert", c.write(insert(c.entry("fixed", exact(1, b"\7"), does=keep)))
    yield "modify", c.write(modify(c.entry("fixed", exact(1, b"\1"), does=keep)))
    yield "delete", c.write(delete(c.entry("fixed", exact(1, b"\1"))))
    yield "packets", c.packets(packet(14, 1), packet(14, 2), packet(14, 3))
    default = c.entry("fixed", does=c.action("set", b"\5", b"\5"), is_default_action=True)
    yield "default", c.write(modify(default))
    yield "packet", c.packets(packet(14, 3))
