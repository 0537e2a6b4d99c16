"""The wire formats of hosts and the P4 programs have the same layout: field names, order, widths;
and the same numbers for kinds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agglab.hosts import wire
from agglab.systems.libra import wire as libra
from agglab.systems.mlfabric import wire as mlfabric
from agglab.systems.netrpc import wire as netrpc
from agglab.systems.omnireduce import wire as omnireduce
from agglab.systems.pooling import wire as pooling

ROOT = Path(__file__).parents[3]


def compiled(tmp_path, program, lanes, *options):
    product = tmp_path / f"{program}.json"
    command = [sys.executable, "-m", "p4native.compiler", f"p4/{program}.p4", "-I", "p4"]
    command += ["-o", str(product), f"-DLANES={lanes}", "-DSLOTS=4", *options]
    subprocess.run(command, cwd=ROOT, check=True)
    return json.loads(product.read_text())


def types_of(document):
    return {
        header["name"]: {name: bits for name, bits, *_ in header["fields"]}
        for header in document["header_types"]
    }


def header_types(tmp_path, program, lanes, *options):
    return types_of(compiled(tmp_path, program, lanes, *options))


@pytest.mark.long(but=["switchml-1"])
@pytest.mark.parametrize("lanes", [1, 365])
@pytest.mark.parametrize("program", ["switchml", "omnireduce"])
def test_the_compiled_program_has_the_same_header(tmp_path, program, lanes):
    headers = header_types(tmp_path, program, lanes)
    assert list(headers["aggregation_t"].items()) == list(wire.field_bits().items())
    shape_bits = sum(wire.field_bits(wire.SHAPE).values())
    assert headers["opening_t"] == {"smallest": shape_bits, "largest": shape_bits}
    assert sum(headers["values_t"].values()) == 8 * (wire.datagram_bytes(lanes) - wire.HEADER_BYTES)


def test_halves_take_the_place_of_values(tmp_path):
    document = compiled(tmp_path, "switchml_float16", 6)
    headers = types_of(document)
    (quads,) = (stack for stack in document["header_stacks"] if stack["header_type"] == "quad_t")
    assert list(headers["quad_t"].values()) == [64]
    assert 64 * quads["size"] == sum(headers["values_t"].values()) == 6 * 32


def test_the_column_follows_the_header(tmp_path):
    column = header_types(tmp_path, "omnireduce", 1)["column_t"]
    assert list(column.items()) == list(wire.field_bits(omnireduce.COLUMN).items())
    whole = [*wire.field_bits().items(), *column.items()]
    assert whole == list(wire.field_bits(omnireduce.HEADER).items())


@pytest.mark.parametrize("lanes", [1, 119])
def test_libra_has_the_same_header_and_room_for_keys_and_values(tmp_path, lanes):
    headers = header_types(tmp_path, "libra", lanes)
    assert list(headers["libra_t"].items()) == list(wire.field_bits(libra.HEADER).items())
    assert sum(headers["keys_t"].values()) == 8 * libra.KEY_BYTES * lanes
    assert sum(headers["values_t"].values()) == 8 * wire.VALUE_BYTES * lanes


def test_entries_stand_behind_the_packet(tmp_path):
    headers = header_types(tmp_path, "omnireduce", 1)
    assert list(headers["entry_t"].items()) == list(wire.field_bits(omnireduce.ENTRY).items())
    assert list(headers["entries_t"]) == ["entries"]
    text = (ROOT / "p4/omnireduce.p4").read_text()
    numbers = dict(re.findall(r"^#define (ENTR\w+) (\d+)$", text, re.MULTILINE))
    assert numbers == {
        "ENTRY_BYTES": str(omnireduce.ENTRY_BYTES),
        "ENTRIES_MAX": str(omnireduce.ENTRIES_MAX),
    }
    assert f"NOTHING_AHEAD = {omnireduce.NOTHING_AHEAD:#06x};" in text


@pytest.mark.long(but=["1"])
@pytest.mark.parametrize("lanes", [1, 365])
def test_a_call_follows_the_header_and_an_argument_the_call(tmp_path, lanes):
    headers = header_types(tmp_path, "netrpc", lanes)
    assert list(headers["aggregation_t"].items()) == list(wire.field_bits().items())
    call = list(wire.field_bits(netrpc.CALL).items())
    assert list(headers["call_t"].items()) == call
    whole = [*wire.field_bits().items(), *call]
    assert whole == list(wire.field_bits(netrpc.HEADER).items())
    assert sum(headers["values_t"].values()) == 8 * netrpc.body_bytes(netrpc.Kind.ARRAY, lanes)
    pair = list(wire.field_bits(netrpc.PAIR).values())
    assert list(headers["pairs_t"].values()) == pair * netrpc.PAIRS


def test_the_program_has_as_many_positions_and_the_same_empty_place():
    text = (ROOT / "p4/netrpc.p4").read_text() + (ROOT / "p4/include/pairs.p4").read_text()
    assert f"#define POSITIONS {netrpc.POSITIONS} " in text
    assert f"#define PAIRS {netrpc.PAIRS}\n" in text
    assert f"NO_PLACE = {netrpc.NO_PLACE:#06x};" in text


@pytest.mark.parametrize("lanes", [1, 357])
def test_a_push_is_laid_out_as_mlfabric_has_it(tmp_path, lanes):
    headers = header_types(tmp_path, "mlfabric", lanes)
    assert list(headers["message_t"].items()) == list(wire.field_bits(mlfabric.HEADER).items())
    assert list(headers["push_t"].items()) == list(wire.field_bits(mlfabric.PUSH).items())
    assert sum(headers["values_t"].values()) == 32 * lanes


def test_the_one_kind_that_mlfabric_looks_into_has_its_number():
    text = (ROOT / "p4/mlfabric.p4").read_text()
    found = dict(re.findall(r"^const bit<8> +(\w+) += (\w+);", text, re.MULTILINE))
    assert int(found["SUMMED"], 0) == mlfabric.Kind.SUMMED
    assert int(found["VERSION"], 0) == mlfabric.VERSION


SUMMED_BY_SWITCHES = ("HOT", "PUSH", "PULL", "LEARN", "SUM", "HOT_RESULT")
"""Those of Libra that the program knows; the others are the servers'."""


@pytest.mark.parametrize("program", ["atp", "esa"])
def test_the_second_header_of_shared_slots_follows_the_first(tmp_path, program):
    headers = header_types(tmp_path, program, 5)
    assert list(headers["pooled_t"].items()) == list(wire.field_bits(pooling.POOLED).items())
    whole = [*wire.field_bits().items(), *headers["pooled_t"].items()]
    assert whole == list(wire.field_bits(pooling.HEADER).items())
    assert sum(headers["values_t"].values()) == 8 * (
        pooling.datagram_bytes(5) - pooling.HEADER_BYTES
    )


SHARED_KINDS = wire.Kind.INT32, wire.Kind.SCALED, wire.Kind.OPENING
"""Those that every program of SwitchML knows."""
KINDS = {
    "pooling": (
        "p4/include/pooling_headers.p4",
        {
            **{kind.name: kind.value for kind in pooling.Kind},
            **{flag.name: flag.value for flag in pooling.Flag},
        },
    ),
    "libra": (
        "p4/libra.p4",
        {kind.name: kind.value for kind in libra.Kind if kind.name in SUMMED_BY_SWITCHES},
    ),
    "netrpc": (
        "p4/netrpc.p4",
        {kind.name: kind.value for kind in netrpc.Kind if kind != netrpc.Kind.KEYS},
    ),
    "switchml": (
        "p4/include/headers.p4",
        {kind.name: kind.value for kind in SHARED_KINDS},
    ),
    "omnireduce": (
        "p4/omnireduce.p4",
        {
            **{kind.name: kind.value for kind in omnireduce.Kind},
            "BARE": omnireduce.BARE,
            "FUSED": omnireduce.FUSED,
        },
    ),
}


@pytest.mark.parametrize("program", KINDS)
def test_kinds_have_the_same_numbers(program):
    path, kinds = KINDS[program]
    found = re.findall(r"^const bit<8> +(\w+) += (\w+);", (ROOT / path).read_text(), re.MULTILINE)
    assert {name: int(number, 0) for name, number in found} == kinds


def test_narrow_kinds_have_the_same_numbers():
    text = (ROOT / "p4/include/narrow.p4").read_text()
    kinds = re.findall(r"^const bit<8> +NARROW(\d+) += (\d+);", text, re.MULTILINE)
    assert {int(bits): int(kind) for bits, kind in kinds} == wire.NARROW
