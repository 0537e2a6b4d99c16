"""Tables that grow and shrink against a plain search of a list, also under sanitizers."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from switch_builder import Builder, argument, call, extract, field, transition
from switch_sanitized import Sanitized

from p4native.switch import Exact, Lpm, Pipeline, Program, Range, Ternary
from p4native.switch.matches import Match

KEYS: dict[str, list[tuple[str, int]]] = {
    "exact": [("exact", 24)],
    "lpm": [("exact", 8), ("lpm", 32)],
    "ternary": [("ternary", 24), ("ternary", 16)],
    "range": [("range", 16)],
    "ranges": [("range", 24), ("ternary", 8), ("range", 8), ("range", 80), ("range", 64)],
}
PORTS = 400


def builder(name: str) -> Builder:
    """The frame's fields are the key; the argument of the entry that hits becomes the port."""
    b = Builder()
    b.packet_header("k", [[f"k{i}", bits] for i, (_, bits) in enumerate(KEYS[name])])
    b.state("start", [extract("k")], [], [transition(None, 0, None)])
    hit = b.action(
        "hit", [call("assign", field("standard_metadata", "egress_spec"), argument(0))], port=9
    )
    drop = {"type": "header", "value": "standard_metadata"}
    miss = b.action("miss", [call("mark_to_drop", drop)])
    key = [(kind, ["k", f"k{i}"]) for i, (kind, _) in enumerate(KEYS[name])]
    b.table("t", key, [hit, miss], (miss, []), max_size=1 << 16)
    return b


@dataclass(frozen=True)
class Row:
    """An entry as the plain search sees it: (low, high) or (value, mask) of each field."""

    handle: int
    match: tuple[tuple[int, int], ...]
    priority: int
    port: int


def draw(rng: random.Random, kind: str, bits: int) -> tuple[Match, tuple[int, int]]:
    """Masks and lengths from none of the bits to all of them, values near each other."""
    full = (1 << bits) - 1
    value = rng.choice((rng.getrandbits(bits), rng.getrandbits(min(bits, 10))))
    if kind == "exact":
        return Exact(value), (value, full)
    if kind == "lpm":
        length = rng.randrange(bits + 1)
        mask = full - (full >> length)
        return Lpm(value & mask, length), (value & mask, mask)
    if kind == "ternary":
        mask = rng.choice((full, full << rng.randrange(bits) & full, rng.getrandbits(bits)))
        return Ternary(value, mask), (value & mask, mask)
    high = rng.choice((value, min(full, value + rng.getrandbits(rng.randrange(1, bits + 1))), full))
    return Range(value, high), (value, high)


def priority_of(name: str, row: Row) -> tuple[int, int]:
    """What wins is largest: lpm by length, and of equal ones the lowest slot."""
    length = row.match[-1][1].bit_count() if name == "lpm" else row.priority
    return length, -(row.handle & 0xFFFFFFFF)


def search(name: str, rows: list[Row], values: list[int]) -> int | None:
    """The port of the entry that wins."""

    def fits(kind: str, value: int, match: tuple[int, int]) -> bool:
        if kind == "range":
            return match[0] <= value <= match[1]
        return value & match[1] == match[0]

    found = [
        row
        for row in rows
        if all(
            fits(kind, value, match)
            for (kind, _), value, match in zip(KEYS[name], values, row.match, strict=True)
        )
    ]
    return max(found, key=lambda row: priority_of(name, row)).port if found else None


def near(rng: random.Random, name: str, rows: list[Row]) -> list[int]:
    """A key at the edge of an entry, or anywhere."""
    row = rng.choice(rows) if rows and rng.random() < 0.8 else None
    values = []
    for i, (kind, bits) in enumerate(KEYS[name]):
        full = (1 << bits) - 1
        value = rng.getrandbits(bits)
        if row and kind == "range":
            value = rng.choice(row.match[i]) + rng.choice((-1, 0, 0, 1))
        elif row:
            value = row.match[i][0] | value & ~row.match[i][1]
        values.append(value & full)
    return values


def frame(name: str, values: list[int]) -> bytes:
    pairs = zip(KEYS[name], values, strict=True)
    return b"".join(value.to_bytes(bits // 8, "big") for (_, bits), value in pairs)


@pytest.mark.long(but=["exact", "ranges"])
@pytest.mark.parametrize("name", KEYS)
def test_large_tables_equal_a_plain_search(name: str) -> None:
    rng = random.Random(f"index {name}")
    rows: list[Row] = []
    with Pipeline.of(Program.parse(builder(name).json())) as pipeline:
        for goal in (1200, 100, 600, 0, 50):
            while len(rows) > goal:
                row = rows.pop(rng.randrange(len(rows)))
                pipeline.tables.delete("t", row.handle)
            known = {(row.match, row.priority) for row in rows}
            while len(rows) < goal:
                drawn = [draw(rng, kind, bits) for kind, bits in KEYS[name]]
                match = tuple(plain for _, plain in drawn)
                priority = rng.randrange(20) if name in ("ternary", "range", "ranges") else 0
                if (match, priority) in known:
                    continue
                known.add((match, priority))
                port = len(rows) % PORTS
                handle = pipeline.tables.add("t", [m for m, _ in drawn], "hit", [port], priority)
                rows.append(Row(handle, match, priority, port))
            for _ in range(150):
                values = near(rng, name, rows)
                expected = search(name, rows, values)
                copies = pipeline.process(500, frame(name, values))
                assert [port for port, _ in copies] == ([] if expected is None else [expected])


@pytest.mark.parametrize("name", ("lpm", "ternary", "ranges"))
def test_large_tables_under_sanitizers(name: str) -> None:
    """Slots are given in order, so the handles of a table that only grows are 0, 1, 2..."""
    rng = random.Random(f"sanitized {name}")
    switch = Sanitized(builder(name).json())
    rows: list[Row] = []
    seen = set()
    while len(rows) < 300:
        drawn = [draw(rng, kind, bits) for kind, bits in KEYS[name]]
        match = tuple(plain for _, plain in drawn)
        if match in seen:
            continue
        seen.add(match)
        row = Row(len(rows), match, rng.randrange(5), len(rows) % PORTS)
        switch.table_add("t", [m for m, _ in drawn], "hit", [row.port], row.priority)
        rows.append(row)
    for row in rows[::3]:
        switch.table_delete("t", row.handle)
    left = [row for row in rows if row.handle % 3]
    asked = [near(rng, name, rows) for _ in range(200)]
    numbers = [switch.process(500, frame(name, values)) for values in asked]
    answers = switch.finish()
    for number, values in zip(numbers, asked, strict=True):
        expected = search(name, left, values)
        assert [port for port, _ in answers[number]] == ([] if expected is None else [expected])  # type: ignore[attr-defined]
