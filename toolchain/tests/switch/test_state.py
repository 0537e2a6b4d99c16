"""Meters, digests, parser value sets and idle entries."""

from __future__ import annotations

from pathlib import Path

import pytest
from switch_p4 import instance

from p4native.switch import Exact, Lpm, MeterRates, Pipeline, PipelineError, Range, Ternary
from p4native.switch.meters import MAX_BURST, MAX_PER_S
from p4native.switch.tables import DEFAULT_ENTRY

METERS = """
    meter(16, MeterType.packets) packets;
    meter(5, MeterType.bytes) bytes;
    direct_meter<bit<2>>(MeterType.bytes) own;
    action paint(bit<8> v) { own.read(m.colour); hdr.h.a = v; }
    action leave() { own.read(m.colour); }
    table t {
        key = { hdr.h.a : exact; }
        actions = { paint; leave; }
        meters = own;
        support_timeout = true;
        default_action = leave();
    }
    apply {
        bit<32> colour = 9;
        if (hdr.h.b < 0x40) { packets.execute_meter((bit<32>)hdr.h.b, colour); }
        else { bytes.execute_meter((bit<32>)hdr.h.b - 0x40, colour); }
        m.colour = 3;
        t.apply();
        hdr.h.c = m.colour ++ 10w0 ++ colour[3:0];
    }
"""
METADATA = "bit<2> colour;"
NO_COLOUR = 9
"""What a meter that does not exist leaves in place."""


@pytest.fixture
def metered(tmp_path: Path) -> Pipeline:
    return instance(tmp_path, ingress=METERS, metadata=METADATA)


def colour(p: Pipeline, index: int, now_us: int = 0, length: int = 4) -> int:
    """Of the indirect meter: packets for indexes below 0x40, bytes from there on."""
    ((_, frame),) = p.process(0, bytes([0, index, 0, 0]) + bytes(length - 4), now_us)
    return frame[3] & 0xF


def own_colour(p: Pipeline, key: int, length: int = 4) -> int:
    ((_, frame),) = p.process(0, bytes([key, 0, 0, 0]) + bytes(length - 4))
    return frame[2] >> 6


def test_a_meter_without_rates_is_green(metered: Pipeline) -> None:
    assert [colour(metered, i) for i in (0, 15, 0x40, 0x44)] == [0] * 4
    assert metered.meters.read("I.packets", 3) is None


def test_an_index_beyond_the_meters_leaves_the_colour_as_it_is(metered: Pipeline) -> None:
    assert [colour(metered, i) for i in (16, 0x45)] == [NO_COLOUR] * 2


def test_packets_are_green_then_yellow_then_red_and_red_ones_take_nothing(
    metered: Pipeline,
) -> None:
    rates = MeterRates(1000, 3, 2000, 5)
    metered.meters.write("I.packets", 2, rates)
    assert metered.meters.read("I.packets", 2) == rates
    assert [colour(metered, 2) for _ in range(8)] == [0, 0, 0, 1, 1, 2, 2, 2]
    assert [colour(metered, 1) for _ in range(8)] == [0] * 8
    # After 1 ms: one token of the committed rate, two of the peak rate.
    assert [colour(metered, 2, now_us=1000) for _ in range(3)] == [0, 1, 2]
    # After 10 ms more both buckets are full, but hold no more than their bursts.
    assert [colour(metered, 2, now_us=11000) for _ in range(7)] == [0, 0, 0, 1, 1, 2, 2]


def test_bytes_are_counted_as_received(metered: Pipeline) -> None:
    metered.meters.write("I.bytes", 4, MeterRates(0, 150, 0, 250))
    assert [colour(metered, 0x44, length=100) for _ in range(3)] == [0, 1, 2]
    assert [colour(metered, 0x44, length=n) for n in (51, 50, 4)] == [2, 0, 2]


def test_a_clock_that_stands_still_or_goes_back_gives_nothing(metered: Pipeline) -> None:
    metered.meters.write("I.packets", 0, MeterRates(1e6, 1, 1e6, 1))
    assert [colour(metered, 0, now_us=t) for t in (50, 50, 40, 51)] == [0, 2, 2, 0]


def test_rates_can_be_taken_away(metered: Pipeline) -> None:
    metered.meters.write("I.packets", 0, MeterRates(0, 0, 0, 0))
    assert colour(metered, 0) == 2
    metered.meters.write("I.packets", 0, None)
    assert colour(metered, 0) == 0


def test_each_entry_has_a_meter_of_its_own(metered: Pipeline) -> None:
    first, second = (metered.tables.add("I.t", [Exact(k)], "I.paint", [7]) for k in (1, 2))
    metered.meters.write_entry("I.t", second, MeterRates(0, 10, 0, 20))
    assert [own_colour(metered, 2, 10) for _ in range(3)] == [0, 1, 2]
    assert [own_colour(metered, 1, 10) for _ in range(3)] == [0, 0, 0]
    assert own_colour(metered, 5) == 3, "a miss executes no meter"
    assert metered.meters.read_entry("I.t", first) is None
    assert metered.meters.read_entry("I.t", second) == MeterRates(0, 10, 0, 20)


def test_a_new_entry_does_not_inherit_the_meter_of_the_one_before(metered: Pipeline) -> None:
    handle = metered.tables.add("I.t", [Exact(1)], "I.leave")
    metered.meters.write_entry("I.t", handle, MeterRates(0, 0, 0, 0))
    assert own_colour(metered, 1) == 2
    metered.tables.delete("I.t", handle)
    metered.tables.add("I.t", [Exact(1)], "I.leave")
    assert own_colour(metered, 1) == 0


def test_the_default_entry_has_a_meter_once_it_is_configured(metered: Pipeline) -> None:
    metered.tables.add("I.t", [Exact(1)], "I.leave")
    unmetered = 3
    assert own_colour(metered, 7) == unmetered
    metered.meters.write_entry("I.t", DEFAULT_ENTRY, MeterRates(0, 5, 0, 9))
    assert metered.meters.read_entry("I.t", DEFAULT_ENTRY) == MeterRates(0, 5, 0, 9)
    assert [own_colour(metered, key) for key in (7, 8, 9, 1)] == [0, 1, 2, 0]
    metered.meters.write_entry("I.t", DEFAULT_ENTRY, None)
    assert own_colour(metered, 7) == unmetered


COUNTED = """
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_counter(CounterType.packets_and_bytes) all;
    action one() { hits.count(); }
    action any() { all.count(); }
    table t {
        key = { hdr.h.a : exact; }
        actions = { one; }
        counters = hits;
        const default_action = one();
    }
    table always { actions = { any; } counters = all; const default_action = any(); }
    apply { t.apply(); always.apply(); }
"""


def test_the_default_entry_counts_misses(tmp_path: Path) -> None:
    p = instance(tmp_path, ingress=COUNTED)
    entry = p.tables.add("I.t", [Exact(1)], "I.one")
    for key, length in ((1, 10), (2, 20), (3, 30)):
        p.process(0, bytes([key]) + bytes(length - 1))
    assert p.counters.read_entry("I.t", entry) == (1, 10)
    assert p.counters.read_entry("I.t", DEFAULT_ENTRY) == (2, 50)
    assert p.counters.read_entry("I.always", DEFAULT_ENTRY) == (3, 60)
    p.counters.write_entry("I.t", DEFAULT_ENTRY, 7, 700)
    p.process(0, bytes([4, 0, 0, 0]))
    assert p.counters.read_entry("I.t", DEFAULT_ENTRY) == (8, 704)


@pytest.mark.parametrize("per_s", [0.0, MAX_PER_S])
def test_the_lowest_and_the_highest_rate_may_be_both_rates(metered: Pipeline, per_s: float) -> None:
    rates = MeterRates(per_s, 1, per_s, MAX_BURST)
    metered.meters.write("I.packets", 0, rates)
    assert metered.meters.read("I.packets", 0) == rates


def test_wrong_rates_and_meters_are_said(metered: Pipeline) -> None:
    for rates in (
        MeterRates(2, 1, 1, 1),
        MeterRates(-1, 1, 1, 1),
        MeterRates(0, 0, float("nan"), 0),
        MeterRates(0, 0, 0, 1 << 64),
        MeterRates(0, 0, 1e13, 0),
    ):
        with pytest.raises(PipelineError, match="a meter's"):
            metered.meters.write("I.packets", 0, rates)
    with pytest.raises(PipelineError, match="no meter is called 'x'"):
        metered.meters.write("x", 0, None)
    with pytest.raises(PipelineError, match="has the indexes 0 to 4"):
        metered.meters.read("I.bytes", 5)
    with pytest.raises(PipelineError, match="no entry has that handle"):
        metered.meters.write_entry("I.t", 0, None)


def test_an_entry_says_once_that_it_was_hit(metered: Pipeline) -> None:
    handle = metered.tables.add("I.t", [Exact(1)], "I.leave")
    assert not metered.tables.take_hit("I.t", handle)
    own_colour(metered, 2)
    assert not metered.tables.take_hit("I.t", handle)
    own_colour(metered, 1)
    assert metered.tables.take_hit("I.t", handle)
    assert not metered.tables.take_hit("I.t", handle)


def test_a_new_entry_does_not_inherit_the_hit_of_the_one_before(metered: Pipeline) -> None:
    handle = metered.tables.add("I.t", [Exact(1)], "I.leave")
    own_colour(metered, 1)
    metered.tables.delete("I.t", handle)
    again = metered.tables.add("I.t", [Exact(1)], "I.leave")
    assert not metered.tables.take_hit("I.t", again)


def test_the_handle_of_a_deleted_entry_does_not_name_the_one_in_its_place(
    metered: Pipeline,
) -> None:
    deleted = metered.tables.add("I.t", [Exact(1)], "I.leave")
    metered.tables.delete("I.t", deleted)
    present = metered.tables.add("I.t", [Exact(2)], "I.leave")
    assert present % (1 << 32) == deleted % (1 << 32), "they have the same place"
    for attempt in (
        lambda: metered.tables.delete("I.t", deleted),
        lambda: metered.tables.modify("I.t", deleted, "I.leave"),
        lambda: metered.tables.take_hit("I.t", deleted),
        lambda: metered.meters.write_entry("I.t", deleted, None),
        lambda: metered.meters.read_entry("I.t", deleted),
    ):
        with pytest.raises(PipelineError, match="no entry has that handle"):
            attempt()
    assert [entry.handle for entry in metered.tables.entries("I.t")] == [present]


LEARN = {
    "fields": "bit<8> a; bit<8> b; bit<80> wide; bit<12> odd; bit<4> rest;",
    "ingress": """
    action one() { digest<one_t>(1, { hdr.h.a, hdr.h.odd, hdr.h.wide }); }
    action other() { digest<other_t>(1, { s.ingress_port }); }
    apply {
        if (hdr.h.a == 1) one();
        if (hdr.h.a == 2) other();
        if (hdr.h.a == 3) { one(); other(); }
        if (hdr.h.b == 1) mark_to_drop(s);
    }
    """,
    "prelude": """
    struct one_t { bit<8> a; bit<12> odd; bit<80> wide; }
    struct other_t { bit<9> port; }
    """,
}


def learning(a: int, b: int = 0) -> bytes:
    return bytes([a, b, *range(10), 0xAB, 0xCD]) + b"rest"


def test_digests_are_taken_in_order_also_of_dropped_packets(tmp_path: Path) -> None:
    p = instance(tmp_path, **LEARN)
    for port, a, b in ((4, 1, 1), (300, 2, 0), (5, 0, 0), (6, 3, 0)):
        p.process(port, learning(a, b))
    wide = int.from_bytes(bytes(range(10)), "big")
    assert p.digests.take() == [("one_t", (1, 0xABC, wide)), ("other_t", (300,)), ("other_t", (6,))]
    assert p.digests.take() == []


def test_digests_that_nobody_takes_are_dropped_and_counted(tmp_path: Path) -> None:
    p = instance(tmp_path, **LEARN)
    room, left = divmod(1 << 18, 2 + 1 + 2 + 10)
    for _ in range(room + 3):
        assert p.process(0, learning(1))
    assert p.drops()["digest"] == 3
    assert left == 2 + 2, "exactly one sample of other_t fits in what is left"
    for _ in range(2):
        p.process(7, learning(2))
    assert p.drops()["digest"] == 3 + 1
    taken = p.digests.take()
    assert (len(taken), taken[-1]) == (room + 1, ("other_t", (7,)))
    p.process(0, learning(2))
    assert p.digests.take() == [("other_t", (0,))]


SETS = {
    "values": "value_set<bit<8>>(4) one; value_set<tuple<bit<8>, bit<12>>>(4) two;",
    "following": "select(hdr.h.a) { one: in_one; default: second; }",
    "states": """
    state in_one { m.x = 1; transition second; }
    state second {
        transition select(hdr.h.b, hdr.h.c[11:0]) { two: in_two; default: accept; }
    }
    state in_two { m.y = 2; transition accept; }
    """,
    "metadata": "bit<8> x; bit<8> y;",
    "ingress": "apply { s.egress_spec = (bit<9>)(m.x + m.y); }",
}


@pytest.fixture
def choosy(tmp_path: Path) -> Pipeline:
    return instance(tmp_path, **SETS)


def port_of(p: Pipeline, text: str) -> int:
    return p.process(0, bytes.fromhex(text))[0][0]


def test_the_parser_asks_its_value_sets(choosy: Pipeline) -> None:
    assert port_of(choosy, "05060007") == 0
    choosy.value_sets.write("P.one", [[Exact(5)], [Exact(9)]])
    assert [port_of(choosy, t) for t in ("05060007", "09060007", "06060007")] == [1, 1, 0]
    choosy.value_sets.write(
        "P.two", [[Exact(6), Exact(0x123)], [Ternary(0x80, 0x80), Lpm(0x7FF, 4)]]
    )
    assert [port_of(choosy, t) for t in ("0506f123", "00067123", "05060124")] == [3, 2, 1]
    assert [port_of(choosy, t) for t in ("00ff0712", "00ff0812", "007f0712")] == [2, 0, 0]
    choosy.value_sets.write("P.one", [])
    assert port_of(choosy, "05060007") == 0


def test_wrong_members_are_said(choosy: Pipeline) -> None:
    with pytest.raises(PipelineError, match="no value set is called 'x'"):
        choosy.value_sets.write("x", [])
    with pytest.raises(PipelineError, match="a member has 2 fields, not 1"):
        choosy.value_sets.write("P.two", [[Exact(1)]])
    with pytest.raises(PipelineError, match="'field 1' has 12 bits; 4096 does not fit"):
        choosy.value_sets.write("P.two", [[Exact(1), Exact(4096)]])
    with pytest.raises(PipelineError, match="is matched by Ternary"):
        choosy.value_sets.write("P.one", [[Range(1, 2)]])
