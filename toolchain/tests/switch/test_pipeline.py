"""The library's calls: registers, counters, drops, groups, sessions, the cache of compiled code."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import pytest
from switch_builder import Builder, call, extract, field, hexstr, op, ref, transition
from switch_p4 import instance

from p4native.switch import Pipeline, PipelineError, Program, build
from p4native.switch.pipeline import MAX_FRAME


def builder(*steps: Any, egress: Any = ()) -> Builder:
    """One byte `h.x` and the rest; `steps` run in ingress."""
    b = Builder(a=16)
    b.packet_header("h", [["x", 8]])
    b.register("narrow", 12, 3)
    b.register("wide", 70, 3)
    b.counter("c", 2)
    b.state("start", [extract("h")], [], [transition(None, 0, None)])
    kept = [field("m", "a")]
    b.document["field_lists"].append({"id": 1, "name": "kept", "elements": kept})
    b.run("t", b.action("act", list(steps)))
    b.run("e", b.action("out", list(egress)), pipeline="egress")
    return b


def pipeline(*steps: Any, egress: Any = ()) -> Pipeline:
    return Pipeline.of(Program.parse(builder(*steps, egress=egress).json()))


def assign(name: str, value: int) -> Any:
    return call("assign", field("standard_metadata", name), hexstr(value))


def test_registers_keep_their_width_and_their_index() -> None:
    p = pipeline()
    for name, bits in (("narrow", 12), ("wide", 70)):
        for index in range(3):
            p.registers.write(name, index, (1 << bits + 4) - 1 - index)
        assert [p.registers.read(name, i) for i in range(3)] == [
            (1 << bits) - 1 - i for i in range(3)
        ]
        assert p.registers.read_many(name, [2, 0, 0]) == [
            p.registers.read(name, i) for i in (2, 0, 0)
        ]
        assert p.registers.read_many(name, []) == []
        for beyond in ([3], [0, 3], [-1, 0]):
            with pytest.raises(PipelineError, match=f"'{name}' has the indexes 0 to 2"):
                p.registers.read_many(name, beyond)
        with pytest.raises(PipelineError, match=f"'{name}' has the indexes 0 to 2"):
            p.registers.read(name, 3)
    with pytest.raises(PipelineError, match="no register is called 'x'"):
        p.registers.write("x", 0, 0)


def test_a_pipeline_sees_what_its_user_wrote_into_a_register() -> None:
    p = pipeline(call("register_read", field("h", "x"), ref("register_array", "wide"), hexstr(1)))
    p.registers.write("wide", 1, 0x1234)
    assert p.process(0, b"\0rest") == [(0, b"\x34rest")]


def test_counters_count_packets_and_received_bytes() -> None:
    p = pipeline(call("count", ref("counter_array", "c"), field("h", "x")))
    for frame in (b"\1ab", b"\1", b"\0", b"\2"):
        p.process(0, frame)
    assert (p.counters.read("c", 0), p.counters.read("c", 1)) == ((1, 1), (2, 4))
    p.counters.write("c", 1, 70, 80)
    p.process(0, b"\1")
    assert p.counters.read("c", 1) == (71, 81)
    with pytest.raises(PipelineError, match="'c' has the indexes 0 to 1"):
        p.counters.read("c", 2)


def test_multicast_in_order_of_rids_then_ports() -> None:
    rid = call("assign", field("h", "x"), field("standard_metadata", "egress_rid"))
    p = pipeline(assign("mcast_grp", 3), egress=[rid])
    p.replication.set_multicast_group(3, [(4, 2), (1, 9), (3, 2)])
    assert p.process(0, b"\0!") == [(3, b"\2!"), (4, b"\2!"), (1, b"\x09!")]
    p.replication.set_multicast_group(3, [])
    assert p.process(0, b"\0!") == []
    assert {k: v for k, v in p.drops().items() if v} == {"no_group": 1}
    with pytest.raises(PipelineError, match="multicast group 0"):
        p.replication.set_multicast_group(0, [(1, 1)])


def test_a_group_of_any_number_has_its_own_copies() -> None:
    number = call("assign", field("standard_metadata", "mcast_grp"), field("h", "x"))
    for step, frames, last in ((number, (1, 2, 255), 255), (assign("mcast_grp", 511), (0,), 511)):
        p = pipeline(step)
        for group in (1, 255, 767, 65535):
            p.replication.set_multicast_group(group, [(group % 500, 1)])
        seen = [[port for port, _ in p.process(0, bytes([frame]))] for frame in frames]
        assert seen == [[frame] if frame in (1, 255) else [] for frame in frames]
        p.replication.set_multicast_group(last, [(9, 1)])
        assert p.process(0, b"\xff!") == [(9, b"\xff!")]


def test_ingress_clone_is_the_packet_as_it_came_with_the_listed_fields() -> None:
    seen = call(
        "assign",
        field("h", "x"),
        {
            "type": "expression",
            "value": op("+", field("m", "a"), field("standard_metadata", "instance_type")),
        },
    )
    egress = [seen]
    steps = [
        call("assign", field("m", "a"), hexstr(0x40)),
        call("assign", field("h", "x"), hexstr(0x99)),
        assign("egress_spec", 2),
        call("clone_ingress_pkt_to_egress", hexstr(5), hexstr(1)),
    ]  # fmt: skip
    p = pipeline(*steps, egress=egress)
    p.replication.set_clone_session(5, [(7, 0)])
    assert p.process(0, b"\1!") == [(7, b"\x41!"), (2, b"\x40!")]


@pytest.mark.parametrize("way", ["clone_ingress", "clone_egress"])
def test_a_clone_session_cuts_its_copies_but_not_the_packet(way: str) -> None:
    here = [call(f"{way}_pkt_to_egress", hexstr(3), hexstr(1))]
    there = [assign("egress_spec", 2)]
    first = op("==", field("standard_metadata", "instance_type"), hexstr(0))
    b = Builder(a=8)
    b.packet_header("h", [["x", 8]])
    b.state("start", [extract("h")], [], [transition(None, 0, None)])
    b.document["field_lists"].append({"id": 1, "name": "none", "elements": []})
    egress = here if way == "clone_egress" else []
    b.run("i", b.action("ingress_a", there + (here if not egress else [])), None, "ingress")
    b.condition("e_if", first, "e", None, "egress")
    b.run("e", b.action("egress_a", egress), None, "egress")
    p = Pipeline.of(Program.parse(b.json()))
    p.replication.set_clone_session(3, [(8, 0), (9, 1)], max_bytes=3)
    frame = bytes(range(60))
    assert sorted(p.process(0, frame)) == [(2, frame), (8, frame[:3]), (9, frame[:3])]
    assert sorted(p.process(0, b"\1\2")) == [(2, b"\1\2"), (8, b"\1\2"), (9, b"\1\2")]
    p.replication.set_clone_session(3, [(8, 0)])
    assert sorted(p.process(0, frame)) == [(2, frame), (8, frame)]


@pytest.mark.parametrize("way", ["clone_ingress", "clone_egress", "resubmit", "recirculate"])
def test_wide_metadata_of_a_field_list_is_kept(way: str) -> None:
    """The word is set once, from the packet; the copy or second pass writes it into the packet."""
    b = Builder(again=8, word=80)
    b.packet_header("h", [["word", 80]])
    b.state("start", [extract("h")], [], [transition(None, 0, None)])
    kept = [field("m", "again"), field("m", "word")]
    b.document["field_lists"].append({"id": 1, "name": "kept", "elements": kept})
    back = call(f"{way}_pkt_to_egress", hexstr(1), hexstr(1)) if "clone" in way else None
    first = [
        call("assign", field("m", "again"), hexstr(1)),
        call("assign", field("m", "word"), field("h", "word")),
        call("assign", field("h", "word"), hexstr(0)),
        back or call(way, hexstr(1)),
    ]
    second = [call("assign", field("h", "word"), field("m", "word"))]
    where = "ingress" if way in ("clone_ingress", "resubmit") else "egress"
    for pipeline_name in ("ingress", "egress"):
        steps = first if pipeline_name == where else []
        is_first = op("==", field("m", "again"), hexstr(0))
        names = [f"{pipeline_name}_{n}" for n in ("if", "first", "second")]
        b.condition(names[0], is_first, names[1], names[2], pipeline_name)
        b.run(names[1], b.action(f"{names[1]}_a", steps), None, pipeline_name)
        steps = second if pipeline_name == "egress" else []
        b.run(names[2], b.action(f"{names[2]}_a", steps), None, pipeline_name)
    p = Pipeline.of(Program.parse(b.json()))
    p.replication.set_clone_session(1, [(5, 0)])
    frame = bytes(range(10, 20)) + b"rest"
    assert frame in [copy for _, copy in p.process(0, frame)]


def test_drops_are_counted_by_reason() -> None:
    p = pipeline(call("mark_to_drop", ref("header", "standard_metadata")))
    assert p.process(0, b"\0") == p.process(1, b"") == []
    assert p.drops()["ingress"] == 2
    p = pipeline(egress=[call("mark_to_drop", ref("header", "standard_metadata"))])
    assert p.process(0, b"\0") == []
    assert p.drops()["egress"] == 1


def test_packets_that_go_round_for_ever_are_dropped() -> None:
    """After exactly 1024 passes through ingress, of which each packet has its own."""
    passes = call("count", ref("counter_array", "c"), hexstr(0))
    again = call("resubmit", hexstr(1))
    for p in (pipeline(passes, again), pipeline(passes, egress=[call("recirculate", hexstr(1))])):
        for packets in (1, 2):
            assert p.process(0, b"\0") == []
            assert p.drops()["loop"] == packets
            assert p.counters.read("c", 0) == (1024 * packets, 1024 * packets)


def test_limits_of_the_command_line() -> None:
    p = pipeline(assign("egress_spec", 9), assign("priority", 2))
    assert p.process(0, b"\0") == []
    p.set_limits(drop_port=511, priority_queues=3)
    assert p.process(0, b"\0") == [(9, b"\0")]
    p.set_limits(drop_port=9, priority_queues=3)
    assert p.process(0, b"\0") == []


def test_random_is_repeated_by_the_seed_and_keeps_its_bounds() -> None:
    step = call("modify_field_rng_uniform", field("h", "x"), hexstr(10), hexstr(12))
    program = Program.parse(builder(step).json())

    def draw(seed: int) -> list[int]:
        p = Pipeline.of(program, seed)
        return [p.process(0, b"\0")[0][1][0] for _ in range(60)]

    assert draw(1) == draw(1) != draw(2)
    assert set(draw(3)) == {10, 11, 12}


def test_two_instances_share_nothing() -> None:
    program = Program.parse(builder().json())
    one, other = Pipeline.of(program), Pipeline.of(program)
    one.registers.write("narrow", 0, 5)
    assert (one.handle != other.handle, other.registers.read("narrow", 0)) == (True, 0)


def test_frames_above_the_limit_are_an_error_of_use() -> None:
    p = pipeline()
    assert len(p.process(0, bytes(MAX_FRAME))[0][1]) == MAX_FRAME
    with pytest.raises(PipelineError, match="at most 65535 bytes"):
        p.process(0, bytes(MAX_FRAME + 1))


def test_addresses_of_the_seam() -> None:
    with pipeline() as p:
        known = ctypes.cast(ctypes.CDLL(str(p.library_path)).pl_process, ctypes.c_void_p).value
        assert p.function_address("pl_process") == known
    assert p.handle == 0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "switch"


def test_a_program_is_compiled_once(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "prog.json"
    path.write_text(builder().json())
    first = Pipeline.load(path)
    made = first.library_path.stat().st_mtime_ns
    assert first.library_path.parent == cache
    assert Pipeline.load(path).library_path.stat().st_mtime_ns == made
    assert {p.suffix for p in cache.iterdir()} == {".so", ".c"}
    changed = json.loads(path.read_text())
    changed["register_arrays"][0]["bitwidth"] = 13
    path.write_text(json.dumps(changed))
    assert Pipeline.load(path).library_path != first.library_path


def test_a_program_is_read_once_and_its_instances_have_separate_state() -> None:
    first, second = pipeline(), pipeline()
    assert first.program is second.program
    first.registers.write("narrow", 0, 5)
    assert (first.registers.read("narrow", 0), second.registers.read("narrow", 0)) == (5, 0)
    assert pipeline(assign("egress_spec", 3)).program is not first.program


def test_no_compiler_is_an_error_of_the_pipeline(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(PipelineError, match=r"^no C compiler: 'no-such-compiler' is not in PATH"):
        pipeline()


def test_a_cache_that_others_can_write_to_is_an_error_of_the_pipeline(cache: Path) -> None:
    pipeline().close()
    cache.chmod(0o775)
    with pytest.raises(PipelineError, match=r"others may write to it.* set P4NATIVE_CACHE"):
        pipeline()


def test_what_the_compiler_refuses_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "COMMON", ("-std=nowhere",))
    with pytest.raises(PipelineError, match=r"nowhere.*\(the generated .*failed.c\)$"):
        pipeline()
    assert "Generated from BMv2 JSON" in (cache / "failed.c").read_text()


@pytest.mark.parametrize(
    ("declared_bits", "longest_bytes"), [(0, 0), (8, 1), (1 << 20, 255), ((1 << 31) - 8, 255)]
)
def test_a_varbit_may_be_empty_or_wider_than_a_packet(
    declared_bits: int, longest_bytes: int, tmp_path: Path
) -> None:
    """The first byte is the length. Field c is 1 if the header was extracted, 2 if too short."""
    pipeline = instance(
        tmp_path,
        prelude=f"header v_t {{ bit<8> d; varbit<{declared_bits}> rest; }}",
        following="more;",
        values="v_t v;",
        states="state more { p.extract(v, (bit<32>)hdr.h.a * 8); transition accept; }",
        ingress="""apply {
            s.egress_spec = 1;
            hdr.h.c = s.parser_error == error.HeaderTooShort ? 16w2 : 1;
        }""",
    )
    for length in {0, longest_bytes, min(longest_bytes + 1, 255)}:
        payload = bytes(1 + length)
        outcome = 1 if length <= longest_bytes else 2
        expected = bytes([length, 0, 0, outcome])
        [(port, frame)] = pipeline.process(0, bytes([length, 0, 0, 0]) + payload)
        assert (port, frame[:4]) == (1, expected)
