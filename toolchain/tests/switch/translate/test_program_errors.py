"""JSON that is wrong: named by its path, never half accepted, whatever was done to it."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from switch_builder import Builder, argument, call, extract, field, hexstr, op, ref, transition

from p4native.switch import PipelineError, Program, ProgramError
from p4native.switch.translate import translate


def document() -> dict[str, Any]:
    """A program with something of everything."""
    b = Builder(a=8, b=32)
    b.packet_header("h", [["x", 8], ["y", 24], ["w", 128]])
    b.packet_header("v", [["n", 8], ["data", "*"]], max_length=20)
    b.header_type("e_t", [["v", 8]])
    b.stack("s", "e_t", 2)
    b.register("r", 32, 4)
    b.counter("c", 4)
    b.add("calculations", name="sum", algo="csum16", input=[field("h", "x"), ref("header", "v")])
    b.add(
        "checksums",
        name="check",
        target=["h", "y"],
        type="generic",
        calculation="sum",
        verify=True,
        update=True,
        if_cond=op("valid", None, ref("header", "h")),
    )
    elements = [field("m", "a")]
    b.document["field_lists"].append({"id": 1, "name": "l", "elements": elements})
    branches = [transition(1, 1, "stack", 3), transition(None, 0, None)]
    b.state("start", [extract("h")], [field("h", "x")], branches)
    length = {"type": "expression", "value": op("*", field("h", "x"), hexstr(8))}
    variable = call("extract_VL", ref("regular", "v"), length)
    b.state("stack", [call("extract", ref("stack", "s")), variable])
    cell = op("+", field("h", "x"), {"type": "local", "value": 0})
    steps = [
        call("register_write", ref("register_array", "r"), cell, field("h", "w")),
        call("count", ref("counter_array", "c"), argument(0)),
        call("push", ref("header_stack", "s"), hexstr(1)),
        call("_jump_if_zero", field("m", "a"), hexstr(4)),
        call("clone_ingress_pkt_to_egress", hexstr(1), hexstr(1)),
    ]
    action = b.action("act", steps, index=32)
    b.table("t", [("lpm", ["h", "y"]), ("exact", ["m", "a"])], [action], (action, [1]), "cond")
    b.condition("cond", op("==", field("m", "b"), hexstr(3)), None, None)
    return b.document


def many_headers(count: int) -> str:
    """Each as long as a header may be."""
    changed = document()
    changed["header_types"].append({"id": 99, "name": "big_t", "fields": [["x", 16384]] * 8})
    for i, field_ in enumerate(changed["header_types"][-1]["fields"]):
        changed["header_types"][-1]["fields"][i] = [f"x{i}", field_[1]]
    for i in range(count):
        header = {"id": 1000 + i, "name": f"big{i}", "header_type": "big_t", "metadata": False}
        changed["headers"].append(header)
    return json.dumps(changed)


def edited(
    *path: Any, value: Any = None, delete: bool = False, also: tuple[str, Any] | None = None
) -> str:
    changed = document()
    place = changed
    for key in path[:-1]:
        place = place[key]
    if delete:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    if also:
        place[also[0]] = also[1]
    return json.dumps(changed)


TABLE = ("pipelines", 0, "tables", 0)
STATE = ("parsers", 0, "parse_states", 0)
STEP = ("actions", 0, "primitives")
CASES: list[tuple[str, Callable[[], str]]] = [
    ("is not JSON", lambda: "{"),
    ("is not JSON", lambda: "[" * 100_000),
    ("must be an object", lambda: "[]"),
    ("__meta__.version: must be 2.0 to 2.24", lambda: edited("__meta__", "version", value=[2, 25])),
    (
        "pipelines[0].tables[0].key[1].target[1]: header type 'm_t' has no field 'z'",
        lambda: edited(*TABLE, "key", 1, "target", value=["m", "z"]),
    ),
    (
        "pipelines[0].tables[0].key[0].match_type: 'ternary' cannot be in a table of type lpm",
        lambda: edited(*TABLE, "key", 0, "match_type", value="ternary"),
    ),
    (
        "pipelines[0].tables[0].key[0]: lacks 'target'",
        lambda: edited(*TABLE, "key", 0, "target", delete=True),
    ),
    (
        "pipelines[0].tables[0].max_size: must be 0 to 16777215",
        lambda: edited(*TABLE, "max_size", value=1 << 24),
    ),
    (
        "pipelines[0].tables[0].next_tables: lacks action 'act'",
        lambda: edited(*TABLE, "next_tables", value={}),
    ),
    (
        "pipelines[0].tables[0]: the next node 'x' does not exist",
        lambda: edited(*TABLE, "next_tables", "act", value="x"),
    ),
    (
        "pipelines[0].tables[0]: the control flow leads back to 't'",
        lambda: edited("pipelines", 0, "conditionals", 0, "true_next", value="t"),
    ),
    (
        "pipelines[0].tables[0]: lacks 'action_profile'",
        lambda: edited(*TABLE, "type", value="indirect"),
    ),
    (
        "pipelines[0].tables[0].default_entry.action_data: must have 1 elements, has 0",
        lambda: edited(*TABLE, "default_entry", "action_data", value=[]),
    ),
    (
        "pipelines[0].tables[0].default_entry.action_data[0]: does not fit the 32 bits of 'index'",
        lambda: edited(*TABLE, "default_entry", "action_data", value=["0x100000000"]),
    ),
    ("pipelines: lacks the pipeline 'egress'", lambda: edited("pipelines", 1, "name", value="x")),
    ("parsers: must have exactly one element called 'parser'", lambda: edited("parsers", value=[])),
    (
        "parse_states[0].transitions[0].value: must be a hexadecimal string of 1 bytes",
        lambda: edited(*STATE, "transitions", 0, "value", value="0x123"),
    ),
    (
        "parse_states[0].transitions[0].next_state: no parser state is called 'x'",
        lambda: edited(*STATE, "transitions", 0, "next_state", value="x"),
    ),
    (
        "parse_states[0].parser_ops[0].op: 'eat' is not an operation of parsers",
        lambda: edited(*STATE, "parser_ops", 0, "op", value="eat"),
    ),
    (
        "needs the operation 'extract_VL'",
        lambda: edited(*STATE, "parser_ops", 0, "parameters", 0, "value", value="v"),
    ),
    (
        "actions[0].primitives[0].op: 'eat' is not a primitive of this switch",
        lambda: edited(*STEP, 0, "op", value="eat"),
    ),
    (
        "actions[0].primitives[0].parameters[0].type: must be 'meter_array'",
        lambda: edited(*STEP, 0, "op", value="execute_meter"),
    ),
    (
        "actions[0].primitives[1]: 'count' has 2 parameters, not 0",
        lambda: edited(*STEP, 1, "parameters", value=[]),
    ),
    (
        "actions[0].primitives[1].parameters[1].value: must be 0 to 0, is 1",
        lambda: edited(*STEP, 1, "parameters", 1, "value", value=1),
    ),
    (
        "actions[0].primitives[3]: must jump to a constant, 0 to 5 here",
        lambda: edited(*STEP, 3, "parameters", 1, "value", value="0x6"),
    ),
    (
        "actions[0].primitives[0].parameters[0].value: no register is called 'q'",
        lambda: edited(*STEP, 0, "parameters", 0, "value", value="q"),
    ),
    (
        "header_types[2].fields[0][1]: must be 1 to 16384, is 0",
        lambda: edited("header_types", 2, "fields", 0, value=["x", 0]),
    ),
    (
        "header_types[2].fields: two fields have the same name",
        lambda: edited("header_types", 2, "fields", 1, value=["x", 24]),
    ),
    (
        "'h_t' is not a whole number of bytes",
        lambda: edited("header_types", 2, "fields", 0, value=["x", 7]),
    ),
    (
        "header_types[3].fields[1]: needs the header type's max_length",
        lambda: edited("header_types", 3, "max_length", delete=True),
    ),
    ("headers[1].id: id 0 exists twice", lambda: edited("headers", 1, "id", value=0)),
    (
        "header_stacks[0].header_ids[1]: 's[0]' is metadata, or in another stack",
        lambda: edited("header_stacks", 0, "header_ids", value=[4, 4]),
    ),
    (
        "deparsers[0].order[0]: 'm' is metadata and not a packet header",
        lambda: edited("deparsers", 0, "order", value=["m"]),
    ),
    (
        "calculations[0].algo: algorithm 'md5' is not supported",
        lambda: edited("calculations", 0, "algo", value="md5"),
    ),
    (
        "checksums[0].target[0]: no header is called 'q'",
        lambda: edited("checksums", 0, "target", value=["q", "y"]),
    ),
    (
        "register_arrays[0].size: must be 0 to",
        lambda: edited("register_arrays", 0, "size", value=1 << 40),
    ),
    (
        "errors[1]: an error's name and number must be new",
        lambda: edited("errors", 1, value=["PacketTooShort", 0]),
    ),
    (
        "registers, counters and meters have more than 4 GiB together",
        lambda: edited("register_arrays", 0, "bitwidth", value=16384, also=("size", 1 << 22)),
    ),
    ("headers: the headers have more than 1048576 bytes together", lambda: many_headers(100)),
]


def test_the_unchanged_document_is_accepted() -> None:
    assert "action_0_p4_act" in translate(Program.parse(json.dumps(document())))


@pytest.mark.parametrize(("message", "text"), CASES, ids=[m[:60] for m, _ in CASES])
def test_each_mistake_is_named(message: str, text: Callable[[], str]) -> None:
    with pytest.raises(ProgramError) as caught:
        Program.parse(text())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_deep_nesting_is_refused() -> None:
    deep: Any = hexstr(1)
    for _ in range(200):
        deep = op("~", None, deep)
    with pytest.raises(ProgramError, match="nested more than 150 deep"):
        Program.parse(edited(*STEP, 3, "parameters", 0, value=deep))


def test_values_without_bound_are_refused() -> None:
    """A comparison needs the whole value: 2^(2^31) does not fit anywhere."""
    shifted = op("<<", field("h", "y"), field("m", "b"))
    condition = op("<", shifted, hexstr(5))
    program = Program.parse(
        edited("pipelines", 0, "conditionals", 0, "expression", value=condition)
    )
    with pytest.raises(ProgramError, match="more than 32768 bits"):
        translate(program)


def test_what_needs_too_much_stack_is_refused() -> None:
    """Wide sums: each needs a few KiB of locals, and functions may all be inlined into one."""
    changed = json.loads(many_headers(2))
    total = op("+", field("big0", "x0"), op("+", field("big1", "x1"), hexstr(1)))
    step = call("assign", field("big0", "x0"), total)
    changed["actions"][0]["primitives"] = [step] * 900
    with pytest.raises(ProgramError, match="more than 4194304 bytes of stack"):
        translate(Program.parse(json.dumps(changed)))
    changed["actions"][0]["primitives"] = [step] * 20
    translate(Program.parse(json.dumps(changed)))


@pytest.mark.long
def test_what_no_compiler_should_be_given_is_refused() -> None:
    changed = document()
    changed["actions"][0]["primitives"] = [
        call("push", ref("header_stack", "s"), hexstr(1))
    ] * 60_000
    with pytest.raises(ProgramError, match="more than 16 MiB as C"):
        translate(Program.parse(json.dumps(changed)))


def test_a_missing_file_is_one_line() -> None:
    with pytest.raises(PipelineError, match=r"nowhere\.json: cannot be read"):
        Program.read("nowhere.json")


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything in a document."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        found.append((value, key))
        if isinstance(inner, dict | list):
            found += nodes(inner)
    return found


@pytest.mark.long
def test_mutated_documents_never_surprise() -> None:
    """Whatever node is replaced by whatever: a ProgramError or a program that translates."""
    rng = random.Random(7)
    original = document()
    junk = [None, True, -1, 0, 1, 1 << 70, "", "h", "0xff", "x\n*/", [], {}, ["h", "x"], hexstr(1)]
    refused = 0
    for _ in range(1500):
        changed = copy.deepcopy(original)
        for _ in range(rng.randrange(1, 3)):
            container, key = rng.choice(nodes(changed))
            source, other = rng.choice(nodes(original))
            value = copy.deepcopy(rng.choice([*junk, source[other]]))
            if isinstance(container, list) and rng.random() < 0.2:
                container.append(value)
            else:
                container[key] = value
        try:
            translate(Program.parse(json.dumps(changed)))
        except ProgramError:
            refused += 1
    assert 300 < refused < 1500
