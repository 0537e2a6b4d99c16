"""Look-ups against brute force while entries come and go; and what the table calls refuse."""

from __future__ import annotations

import random
from typing import Any

import pytest
from switch_builder import Builder, argument, call, extract, field, transition
from switch_interpreter import Interpreter

from p4native.switch import Exact, Lpm, Pipeline, PipelineError, Program, Range, Ternary

KEYS: dict[str, list[tuple[str, int]]] = {
    "exact": [("exact", 9), ("exact", 70)],
    "lpm": [("exact", 5), ("lpm", 12)],
    "wide_lpm": [("lpm", 128)],
    "ternary": [("ternary", 13), ("exact", 3), ("lpm", 9)],
    "range": [("range", 11), ("ternary", 4), ("range", 72)],
}


def builder(name: str, size: int = 1024, **more: Any) -> Builder:
    """The frame's fields are the key; the argument of the entry that hits becomes the port."""
    b = Builder()
    widths = [bits for _, bits in KEYS[name]]
    padding = 8 - sum(widths) % 8
    b.packet_header("k", [*[[f"k{i}", w] for i, w in enumerate(widths)], ["pad", padding]])
    b.state("start", [extract("k")], [], [transition(None, 0, None)])
    target = field("standard_metadata", "egress_spec")
    hit = b.action("hit", [call("assign", target, argument(0))], port=9)
    miss = b.action(
        "miss", [call("mark_to_drop", {"type": "header", "value": "standard_metadata"})]
    )
    key = [(kind, ["k", f"k{i}"]) for i, (kind, _) in enumerate(KEYS[name])]
    b.table("t", key, [hit, miss], (miss, []), max_size=size, **more)
    return b


def draw(rng: random.Random, kind: str, bits: int) -> tuple[Any, Any]:
    """Few values, so that entries overlap; (match, the interpreter's form of it)."""
    value = rng.choice((0, 1, 2, 3, (1 << bits) - 1, 1 << bits - 1))
    if kind == "exact":
        return Exact(value), value
    if kind == "lpm":
        length = rng.randrange(bits + 1)
        value = value >> bits - length << bits - length
        return Lpm(value, length), (value, length)
    if kind == "ternary":
        mask = rng.choice((0, 1, 3, (1 << bits) - 1, 1 << bits - 1))
        return Ternary(value, mask), (value & mask, mask)
    low, high = sorted((value, rng.choice((1, 5, (1 << bits) - 1))))
    return Range(low, high), (low, high)


def frame(rng: random.Random, name: str) -> bytes:
    total, bits = 0, 0
    for _, width in KEYS[name]:
        value = rng.choice((0, 1, 2, 3, 4, (1 << width) - 1, 1 << width - 1))
        total, bits = total << width | value, bits + width
    padding = 8 - bits % 8
    return (total << padding).to_bytes((bits + padding) // 8, "big")


@pytest.mark.parametrize("name", KEYS)
def test_lookups_equal_brute_force_while_entries_change(name: str) -> None:
    rng = random.Random(name)
    b = builder(name)
    model = Interpreter(b.document)
    entries: dict[int, Any] = {}
    with Pipeline.of(Program.parse(b.json())) as pipeline:
        for step in range(300):
            if entries and rng.random() < 0.3:
                handle = rng.choice(list(entries))
                pipeline.tables.delete("t", handle)
                del entries[handle]
            else:
                drawn = [draw(rng, kind, bits) for kind, bits in KEYS[name]]
                plain, priority, port = [d[1] for d in drawn], step, step
                if plain not in [e[0] for e in entries.values()]:
                    handle = pipeline.tables.add(
                        "t", [d[0] for d in drawn], "hit", [port], priority
                    )
                    entries[handle] = (plain, priority, "hit", [port])
            model.entries["t"] = list(entries.values())
            for _ in range(3):
                data = frame(rng, name)
                assert pipeline.process(1, data) == model.process(1, data), (step, data.hex())
        assert len(pipeline.tables.entries("t")) == len(entries) > 10


def test_of_equal_priorities_the_first_slot_wins() -> None:
    with Pipeline.of(Program.parse(builder("ternary").json())) as pipeline:
        matches = [Ternary(0, 0), Exact(0), Lpm(0, 0)]
        first = pipeline.tables.add("t", matches, "hit", [1], 5)
        pipeline.tables.add("t", [Ternary(0, 1), Exact(0), Lpm(0, 0)], "hit", [2], 5)
        assert pipeline.process(0, bytes(4))[0][0] == 1
        pipeline.tables.delete("t", first)
        assert pipeline.process(0, bytes(4))[0][0] == 2


def test_refusals_name_table_and_reason() -> None:
    with Pipeline.of(Program.parse(builder("lpm", size=1).json())) as pipeline:
        key = [Exact(1), Lpm(0x800, 1)]
        handle = pipeline.tables.add("t", key, "hit", [3])
        cases = [
            (lambda: pipeline.tables.add("t", key, "hit", [3]), "an equal entry exists"),
            (lambda: pipeline.tables.add("t", [Exact(2), Lpm(0, 0)], "hit", [3]), "is full"),
            (lambda: pipeline.tables.add("t", [Exact(32), Lpm(0, 0)], "hit", [3]), "5 bits"),
            (lambda: pipeline.tables.add("t", [Exact(2), Lpm(0, 13)], "hit", [3]), "0 to 12"),
            (lambda: pipeline.tables.add("t", [Exact(2)], "hit", [3]), "2 fields, not 1"),
            (lambda: pipeline.tables.add("t", [Lpm(2, 1), Lpm(0, 0)], "hit", [3]), "by Exact"),
            (lambda: pipeline.tables.add("t", key, "hit", [512]), "9 bits"),
            (lambda: pipeline.tables.add("t", key, "hit", []), "1 arguments, not 0"),
            (lambda: pipeline.tables.add("t", key, "none"), "no action 'none'"),
            (lambda: pipeline.tables.add("x", key, "hit"), "no table is called 'x'"),
            (lambda: pipeline.tables.delete("t", handle + 1), "no entry has that handle"),
            (lambda: pipeline.tables.modify("t", handle + (1 << 32), "miss"), "no entry"),
        ]
        for attempt, message in cases:
            with pytest.raises(PipelineError, match=message):
                attempt()
        pipeline.tables.modify("t", handle, "hit", [4])
        assert pipeline.process(0, bytes([0x0C, 0]) + b"\0")[0][0] == 4


def test_constant_entries_win_by_smallest_number_and_cannot_change() -> None:
    entries = [
        {
            "match_key": [
                {"match_type": "ternary", "key": "0x0000", "mask": "0x0000"},
                {"match_type": "exact", "key": "0x00"},
                {"match_type": "lpm", "key": "0x0000", "prefix_length": 0},
            ],
            "action_entry": {"action_id": 0, "action_data": [port]},
            "priority": number,
        }
        for port, number in (("0x5", 2), ("0x6", 1))
    ]
    with Pipeline.of(Program.parse(builder("ternary", entries=entries).json())) as pipeline:
        assert pipeline.process(0, bytes(4))[0][0] == 6
        known = pipeline.tables.entries("t")
        assert [(e.args, e.const) for e in known] == [((5,), True), ((6,), True)]
        assert known[0].match == (Ternary(0, 0), Exact(0), Lpm(0, 0))
        for attempt in (
            lambda: pipeline.tables.delete("t", known[0].handle),
            lambda: pipeline.tables.modify("t", known[0].handle, "miss"),
            lambda: pipeline.tables.add("t", known[0].match, "miss"),
        ):
            with pytest.raises(PipelineError, match="makes this constant"):
                attempt()


def test_direct_counters_count_hits_of_their_entry() -> None:
    b = builder("exact", with_counters=True)
    b.add("counter_arrays", name="hits", size=1024, is_direct=True, binding="t")
    with Pipeline.of(Program.parse(b.json())) as pipeline:
        handles = [pipeline.tables.add("t", [Exact(i), Exact(0)], "hit", [1]) for i in (0, 1)]
        for data in (bytes(10), bytes(12), bytes([0, 0x80]) + bytes(8), b"\xff" * 10):
            pipeline.process(0, data)
        assert pipeline.counters.read("hits", handles[0]) == (2, 22)
        assert pipeline.counters.read_entry("t", handles[1]) == (1, 10)
        pipeline.counters.write("hits", handles[0], 7, 8)
        assert pipeline.counters.read_entry("t", handles[0]) == (7, 8)
