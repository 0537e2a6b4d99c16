"""Random programs (parser, tables, actions, control flow, copies) and packets: native code under
sanitizers against the interpreter."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from switch_builder import Builder, call, extract, hexstr, local, op, ref, transition
from switch_builder import field as f
from switch_interpreter import Interpreter
from switch_sanitized import Sanitized

from p4native.switch import Exact, Lpm, Match, Range, Ternary

PORTS = 8
FRAMES = 60
KINDS = ("exact", "exact", "lpm", "ternary", "range")


@dataclass
class Plan:
    """A program with what is installed into it and sent through it."""

    builder: Builder
    entries: list[tuple[str, list[Match], list[Any], str, list[int], int]] = field(
        default_factory=list
    )
    frames: list[tuple[int, bytes]] = field(default_factory=list)


def draw_headers(rng: random.Random, b: Builder) -> dict[str, list[tuple[str, int]]]:
    """Headers h0.. whose fields need not end on bytes; fields by header."""
    headers = {}
    for i in range(4):
        fields = [
            (f"a{j}", rng.choice((1, 3, 4, 8, 12, 16, 32, 48, 64, 72, 128))) for j in range(4)
        ]
        padding = -sum(bits for _, bits in fields) % 8
        if padding:
            fields.append(("pad", padding))
        b.packet_header(f"h{i}", [[n, w] for n, w in fields])
        headers[f"h{i}"] = fields
    b.header_type("s_t", [["v", 8], ["w", 16]])
    b.stack("s", "s_t", 3)
    return headers


def draw_parser(rng: random.Random, b: Builder, headers: dict[str, list[tuple[str, int]]]) -> None:
    names = list(headers)
    for i, name in enumerate(names):
        chosen, bits = rng.choice(headers[name])
        size = (bits + 7) // 8
        following = [*[f"p{n}" for n in names[i + 1 :]], "stack", None]
        branches = []
        for _ in range(3):
            mask = rng.getrandbits(bits) if rng.random() < 0.7 else None
            value = rng.getrandbits(bits)
            branches.append(transition(value, size, rng.choice(following), mask))
        branches.append(transition(None, 0, rng.choice(following)))
        ops = [extract(name)]
        if rng.random() < 0.3:
            condition = op("<", f(name, chosen), hexstr(rng.getrandbits(bits)))
            ops.append({"op": "verify", "parameters": [condition, hexstr(rng.randrange(1, 7))]})
        if rng.random() < 0.3:
            ops.append({"op": "set", "parameters": [f("m", "b"), ref("lookahead", [3, 21])]})  # type: ignore
        b.state(f"p{name}", ops, [f(name, chosen)], branches)
    loop = [transition(1, 1, "stack", 1), transition(None, 0, None)]
    ops = [call("extract", ref("stack", "s"))]
    b.state("stack", ops, [{"type": "stack_field", "value": ["s", "v"]}], loop)
    b.document["parsers"][0]["init_state"] = "ph0"


class Actions:
    """Draws actions over headers, metadata, registers and what the traffic manager offers."""

    def __init__(self, rng: random.Random, headers: dict[str, list[tuple[str, int]]]) -> None:
        self.rng = rng
        self.fields = [f(h, n) for h, fields in headers.items() for n, _ in fields]
        self.fields += [f("m", n) for n in ("a", "b", "c", "wide")]
        self.headers = list(headers)

    def value(self) -> Any:
        left, right = self.rng.choice(self.fields), self.rng.choice(self.fields)
        choice = self.rng.randrange(5)
        if choice == 0:
            return hexstr(self.rng.getrandbits(16))
        if choice == 1:
            return left
        if choice == 2:
            return op("+", left, local(0))
        return op(self.rng.choice(("+", "-", "^", "&", "|")), left, right)

    def assign(self) -> Any:
        value = self.value()
        return call("assign", self.rng.choice(self.fields), {"type": "expression", "value": value})

    def steps(self) -> list[Any]:
        rng = self.rng
        header = ref("header", rng.choice(self.headers))
        other = ref("header", rng.choice(self.headers))
        index = op("&", rng.choice(self.fields), hexstr(7))
        options = [
            self.assign(),
            self.assign(),
            self.assign(),
            call("add_header", header),
            call("remove_header", other),
            call("register_write", ref("register_array", "r"), index, self.value()),
            call("register_read", rng.choice(self.fields), ref("register_array", "r"), index),
            call("register_write", ref("register_array", "wide"), index, self.value()),
            call("register_read", f("m", "wide"), ref("register_array", "wide"), index),
            call("count", ref("counter_array", "c"), index),
            call("push", ref("header_stack", "s"), hexstr(rng.randrange(3))),
            call("pop", ref("header_stack", "s"), hexstr(rng.randrange(3))),
            call(
                "modify_field_with_hash_based_offset",
                rng.choice(self.fields),
                hexstr(3),
                ref("calculation", rng.choice(("crc32", "csum16", "xor16", "identity"))),
                hexstr(rng.randrange(100)),
            ),
        ]
        return rng.sample(options, 4)


def draw_traffic(rng: random.Random, where: str, once: bool) -> list[Any]:
    """A step that concerns the traffic manager, now and then. Packets that come back do so with
    m.again set, which keeps them from where they would come back once more."""
    clone = f"clone_{where}_pkt_to_egress"
    options: list[list[Any]] = [
        [call("mark_to_drop", ref("header", "standard_metadata"))],
        [call("assign", f("standard_metadata", "mcast_grp"), hexstr(rng.randrange(3)))],
        [call("truncate", hexstr(rng.randrange(1, 60)))],
        [call("exit")],
        [],
        [],
    ]
    if once:
        again = call("assign", f("m", "again"), hexstr(1))
        back = "resubmit" if where == "ingress" else "recirculate"
        options.append([again, call(back, hexstr(1))])
        options.append([again, call(clone, hexstr(rng.randrange(1, 4)), hexstr(1))])
    return rng.choice(options)


def draw_calculations(b: Builder, headers: dict[str, list[tuple[str, int]]]) -> None:
    inputs = [f("h0", headers["h0"][0][0]), f("h1", headers["h1"][1][0]), ref("header", "h2")]
    aligned = [ref("header", "h0"), ref("header", "h3"), {"type": "payload", "value": None}]
    constant = {"type": "hexstr", "value": "0x1ab", "bitwidth": 9}
    for name, content in (
        ("crc32", aligned),
        ("csum16", aligned),
        ("xor16", [*inputs[:2], constant]),
        ("identity", [constant, *inputs[:2]]),
    ):
        b.add("calculations", name=name, algo=name, input=content)
    b.add(
        "checksums",
        name="check",
        target=["h1", headers["h1"][0][0]],
        type="generic",
        calculation="csum16",
        verify=True,
        update=True,
        if_cond=op("<", f("m", "b"), hexstr(1 << 31)),
    )


def draw_flow(rng: random.Random, plan: Plan, headers: dict[str, list[tuple[str, int]]]) -> None:
    """Both pipelines: a table for packets that have not come back, then one for all."""
    b = plan.builder
    draw = Actions(rng, headers)
    for where in ("ingress", "egress"):
        first = op("==", f("m", "again"), hexstr(0))
        b.condition(f"{where}_first", first, f"{where}_t0", f"{where}_t1", where)
        for i, following in ((0, f"{where}_t1"), (1, None)):
            actions = []
            for j in range(3):
                steps = draw.steps() + draw_traffic(rng, where, once=i == 0)
                if where == "ingress":
                    port = op("&", op("+", rng.choice(draw.fields), local(0)), hexstr(PORTS - 1))
                    steps.insert(0, call("assign", f("standard_metadata", "egress_spec"), port))
                actions.append(b.action(f"{where}{i}{j}", steps, x=12))
            draw_table(rng, plan, headers, f"{where}_t{i}", actions, following, where)


def draw_table(
    rng: random.Random,
    plan: Plan,
    headers: dict[str, list[tuple[str, int]]],
    name: str,
    actions: list[int],
    following: str | None,
    where: str,
) -> None:
    b = plan.builder
    keys: list[tuple[str, list[str]]] = []
    bits = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.choice(KINDS)
        if kind == "lpm" and any(k == "lpm" for k, _ in keys):
            kind = "exact"
        header = rng.choice(list(headers))
        chosen, width = rng.choice(headers[header])
        keys.append((kind, [header, chosen]))
        bits.append(width)
    hit_miss = rng.random() < 0.3
    next_tables = {"__HIT__": following, "__MISS__": None} if hit_miss else following
    default = (rng.choice(actions), [rng.getrandbits(12)])
    table = b.table(name, keys, actions, default, next_tables, where)
    seen = set()
    for priority in range(rng.randrange(12)):
        matches = [draw_match(rng, k, w) for (k, _), w in zip(keys, bits, strict=True)]
        plain = [m[1] for m in matches]
        if str(plain) in seen:
            continue
        seen.add(str(plain))
        action = b.document["actions"][rng.choice(actions)]["name"]
        args = [rng.getrandbits(12)]
        rank = priority if table["match_type"] in ("ternary", "range") else 0
        plan.entries.append((name, [m[0] for m in matches], plain, action, args, rank))


def draw_match(rng: random.Random, kind: str, bits: int) -> tuple[Match, Any]:
    """The same match for the library and for the interpreter; small values, so that some hit."""
    value = rng.choice((0, 1, (1 << bits) - 1, rng.getrandbits(bits)))
    if kind == "exact":
        return Exact(value), value
    if kind == "lpm":
        length = rng.randrange(bits + 1)
        value = value >> bits - length << bits - length
        return Lpm(value, length), (value, length)
    if kind == "ternary":
        mask = rng.getrandbits(bits) & rng.getrandbits(bits)
        return Ternary(value & mask, mask), (value & mask, mask)
    low, high = sorted((value, rng.getrandbits(bits)))
    return Range(low, high), (low, high)


def draw_frames(rng: random.Random, plan: Plan) -> None:
    for _ in range(FRAMES):
        length = rng.choice((0, 1, 20, 60, 100, 150))
        data = rng.choice((bytes(length), b"\xff" * length, rng.randbytes(length)))
        mixed = bytes(x & rng.choice((0, 1, 255)) for x in data)
        plan.frames.append((rng.randrange(PORTS), rng.choice((data, mixed))))


def draw_plan(rng: random.Random) -> Plan:
    plan = Plan(Builder(again=8, a=8, b=32, c=64, wide=100))
    b = plan.builder
    headers = draw_headers(rng, b)
    b.register("r", rng.choice((1, 8, 33, 64)), 6)
    b.register("wide", 100, 6)
    b.counter("c", 5)
    kept = [f("m", "again"), f("m", "a"), f("m", "wide"), f("standard_metadata", "ingress_port")]
    b.document["field_lists"].append({"id": 1, "name": "kept", "elements": kept})
    draw_calculations(b, headers)
    draw_parser(rng, b, headers)
    draw_flow(rng, plan, headers)
    draw_frames(rng, plan)
    return plan


GROUPS = {1: [(1, 1), (3, 2)], 2: [(0, 7)]}
SESSIONS = {1: [(5, 0)], 2: [(6, 1), (7, 1)]}


def write_entries(native: Any, model: Interpreter, plan: Plan) -> None:
    for table, match, plain, action, args, priority in plan.entries:
        native.table_add(table, match, action, args, priority)
        model.entries.setdefault(table, []).append((plain, priority, action, args))
    for number, replicas in GROUPS.items():
        native.set_multicast_group(number, replicas)
        model.groups[number] = replicas
    for number, replicas in SESSIONS.items():
        native.set_clone_session(number, replicas)
        model.sessions[number] = replicas


@pytest.mark.parametrize("seed", range(8))
def test_programs_equal_the_interpreter(seed: int) -> None:
    plan = draw_plan(random.Random(seed))
    native = Sanitized(plan.builder.json())
    model = Interpreter(plan.builder.document)
    write_entries(native, model, plan)
    installed = len(native.readers)
    for now, (port, frame) in enumerate(plan.frames):
        native.process(port, frame, now)
    registers = [(n, i) for n in ("r", "wide") for i in range(6)]
    for name, index in registers:
        native.register_read(name, index)
    answers = native.finish()
    assert all(a[0] == 0 for a in answers[:installed])  # type: ignore[index]
    answers = answers[installed:]
    for now, (port, frame) in enumerate(plan.frames):
        expected = model.process(port, frame, now)
        assert answers[now] == expected, (now, port, frame.hex())
    for (name, index), value in zip(registers, answers[len(plan.frames) :], strict=True):
        assert value == model.registers[name][index]
