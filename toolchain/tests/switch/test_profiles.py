"""Action profiles and selectors: members, groups, who refers to whom, which member a hash takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from switch_p4 import instance, program_json

from p4native.switch import (
    Exact,
    Group,
    Member,
    Pipeline,
    PipelineError,
    Program,
    ProgramError,
    Ternary,
)

INGRESS = """
    action set(bit<8> v, bit<9> port) { hdr.h.b = v; s.egress_spec = port; }
    action mark() { hdr.h.c = 0xbeef; s.egress_spec = 2; }
    action_selector(HashAlgorithm.crc16, 64, 16) sel;
    action_profile(32) prof;
    table t {
        key = { hdr.h.a : exact; hdr.h.c : selector; }
        actions = { set; mark; NoAction; }
        implementation = sel;
    }
    table u {
        key = { hdr.h.a : ternary; }
        actions = { set; mark; }
        implementation = prof;
    }
    table w { key = { hdr.h.b : exact; } actions = { mark; } implementation = prof; }
    apply { if (t.apply().hit) { hdr.h.a = 0x80; } else { u.apply(); w.apply(); } }
"""


@pytest.fixture
def p(tmp_path: Path) -> Pipeline:
    return instance(tmp_path, ingress=INGRESS)


def crc16(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


def sent(p: Pipeline, text: str) -> tuple[int, str]:
    ((port, frame),) = p.process(0, bytes.fromhex(text))
    return port, frame.hex()


def test_the_hash_chooses_among_a_groups_members_in_the_order_of_their_numbers(p: Pipeline) -> None:
    members = [p.profiles.add_member("I.sel", "I.set", [16 * i, i]) for i in range(6)]
    group = p.profiles.add_group("I.sel", [members[5], members[2], members[3]])
    p.tables.add_indirect("I.t", [Exact(1)], group)
    seen = set()
    for c in (0, 1, 2, 3, 0x100, 0x1234, 0xFFFF):
        chosen = (2, 3, 5)[crc16(c.to_bytes(2, "big")) % 3]
        assert sent(p, f"0100{c:04x}") == (chosen, f"80{16 * chosen:02x}{c:04x}")
        seen.add(chosen)
    assert seen == {2, 3, 5}


def test_a_member_that_is_given_twice_is_taken_twice_as_often(p: Pipeline) -> None:
    one, two = (p.profiles.add_member("I.sel", "I.set", [i, i]) for i in (1, 2))
    group = p.profiles.add_group("I.sel", [two, one, two])
    p.tables.add_indirect("I.t", [Exact(1)], group)
    ports = [sent(p, f"0100{c:04x}")[0] for c in range(64)]
    assert ports == [(1, 2, 2)[crc16(c.to_bytes(2, "big")) % 3] for c in range(64)]


def test_an_empty_group_is_a_hit_that_does_nothing(p: Pipeline) -> None:
    p.tables.add_indirect("I.t", [Exact(1)], p.profiles.add_group("I.sel"))
    assert sent(p, "01770000") == (0, "80770000")


def test_entries_follow_changes_of_their_member_and_of_their_group(p: Pipeline) -> None:
    first, second = (p.profiles.add_member("I.sel", "I.set", [v, v]) for v in (4, 5))
    group = p.profiles.add_group("I.sel", [first])
    handle = p.tables.add_indirect("I.t", [Exact(1)], group)
    assert sent(p, "01000000") == (4, "80040000")
    p.profiles.modify_member("I.sel", first, "I.mark")
    assert sent(p, "01000000") == (2, "8000beef")
    p.profiles.set_group("I.sel", group, [second])
    assert sent(p, "01000000") == (5, "80050000")
    p.tables.modify_indirect("I.t", handle, first)
    assert sent(p, "01000000") == (2, "8000beef")
    assert p.tables.entries("I.t")[0].target == first


def test_tables_share_a_profile_and_misses_take_the_default_member(p: Pipeline) -> None:
    low, high = (p.profiles.add_member("I.prof", "I.set", [v, v]) for v in (6, 7))
    mark = p.profiles.add_member("I.prof", "I.mark")
    p.tables.add_indirect("I.u", [Ternary(0x80, 0x80)], low, priority=1)
    p.tables.add_indirect("I.u", [Ternary(0xC0, 0xC0)], high, priority=2)
    p.tables.add_indirect("I.w", [Exact(7)], mark)
    assert sent(p, "81000000") == (6, "81060000")
    assert sent(p, "c1000000") == (2, "c107beef")
    assert sent(p, "01000000") == (0, "01000000")
    p.tables.set_default_indirect("I.u", low)
    assert sent(p, "01000000") == (6, "01060000")


def test_what_is_in_use_cannot_be_deleted(p: Pipeline) -> None:
    member, other = (p.profiles.add_member("I.sel", "I.set", [v, v]) for v in (1, 2))
    group = p.profiles.add_group("I.sel", [member])
    handle = p.tables.add_indirect("I.t", [Exact(1)], group)
    for delete in (
        lambda: p.profiles.delete_member("I.sel", member),
        lambda: p.profiles.delete_group("I.sel", group),
    ):
        with pytest.raises(PipelineError, match="it is in use"):
            delete()
    p.tables.modify_indirect("I.t", handle, other)
    with pytest.raises(PipelineError, match="in use"):
        p.profiles.delete_member("I.sel", other)
    p.profiles.delete_group("I.sel", group)
    p.profiles.delete_member("I.sel", member)
    p.tables.delete("I.t", handle)
    p.profiles.delete_member("I.sel", other)
    assert p.profiles.add_member("I.sel", "I.mark") == Member(0)
    assert p.profiles.add_group("I.sel") == Group(0)


def test_a_group_uses_the_members_that_it_has_now(p: Pipeline) -> None:
    before, kept, new = (p.profiles.add_member("I.sel", "I.set", [v, v]) for v in (1, 2, 3))
    group = p.profiles.add_group("I.sel", [before, kept])
    p.profiles.set_group("I.sel", group, [kept, new])
    p.profiles.delete_member("I.sel", before)
    for member in (kept, new):
        with pytest.raises(PipelineError, match="in use"):
            p.profiles.delete_member("I.sel", member)
    p.profiles.set_group("I.sel", group, [])
    for member in (kept, new):
        p.profiles.delete_member("I.sel", member)


def test_a_default_member_stays_in_use_until_another_takes_its_place(p: Pipeline) -> None:
    one, two = (p.profiles.add_member("I.prof", "I.mark") for _ in range(2))
    p.tables.set_default_indirect("I.u", one)
    p.tables.set_default_indirect("I.u", two)
    p.profiles.delete_member("I.prof", one)
    with pytest.raises(PipelineError, match="in use"):
        p.profiles.delete_member("I.prof", two)


def test_mistakes_are_said(p: Pipeline) -> None:
    with pytest.raises(PipelineError, match="no action profile is called 'x'"):
        p.profiles.add_member("x", "I.set", [1, 2])
    with pytest.raises(PipelineError, match=r"has no action 'y' \(it has: I.set, I.mark"):
        p.profiles.add_member("I.sel", "y")
    with pytest.raises(PipelineError, match=r"'I\.prof' has no selector"):
        p.profiles.add_group("I.prof")
    for target in (Member(0), Group(3), Member(-1), Group(1 << 31)):
        with pytest.raises(PipelineError):
            p.tables.add_indirect("I.t", [Exact(1)], target)
    with pytest.raises(PipelineError):
        p.profiles.add_group("I.sel", [Member(4)])
    assert p.profiles.add_group("I.sel") == Group(0)
    with pytest.raises(PipelineError, match="not a valid value"):
        p.tables.add("I.t", [Exact(1)], "I.mark")


def test_a_program_whose_tables_disagree_on_an_action_is_refused() -> None:
    document = json.loads(program_json(ingress=INGRESS))
    tables = document["pipelines"][0]["tables"]
    copy = {**document["actions"][0], "id": 77, "runtime_data": []}
    document["actions"].append({**copy, "primitives": []})
    table = next(t for t in tables if t["name"] == "I.u")
    table["action_ids"][table["actions"].index(copy["name"])] = 77
    table["action_profile"] = "I.sel"
    with pytest.raises(ProgramError, match=r"differs from that of 'I\.sel'"):
        Program.parse(json.dumps(document))
