"""The wire formats of hosts and the P4 programs have the same layout: field names, order, widths;
and the same numbers for kinds."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agglab.hosts import wire
from agglab.hosts.systems.omnireduce import wire as omnireduce
from agglab.hosts.systems.pooling import wire as pooling

ROOT = Path(__file__).parents[3]


def header_types(tmp_path, program, lanes):
    product = tmp_path / f"{program}.json"
    command = [sys.executable, "-m", "agglab.compiler", f"p4/{program}.p4", "-I", "p4"]
    command += ["-o", str(product), f"-DLANES={lanes}", "-DSLOTS=4"]
    subprocess.run(command, cwd=ROOT, check=True)
    return {
        header["name"]: {name: bits for name, bits, *_ in header["fields"]}
        for header in json.loads(product.read_text())["header_types"]
    }


@pytest.mark.parametrize("lanes", [1, 365])
@pytest.mark.parametrize("program", ["switchml", "omnireduce"])
def test_the_compiled_program_has_the_same_header(tmp_path, program, lanes):
    headers = header_types(tmp_path, program, lanes)
    assert list(headers["aggregation_t"].items()) == list(wire.field_bits().items())
    shape_bits = sum(wire.field_bits(wire.SHAPE).values())
    assert headers["opening_t"] == {"smallest": shape_bits, "largest": shape_bits}
    assert sum(headers["values_t"].values()) == 8 * (wire.datagram_bytes(lanes) - wire.HEADER_BYTES)


def test_the_column_follows_the_header(tmp_path):
    column = header_types(tmp_path, "omnireduce", 1)["column_t"]
    assert list(column.items()) == list(wire.field_bits(omnireduce.COLUMN).items())
    whole = [*wire.field_bits().items(), *column.items()]
    assert whole == list(wire.field_bits(omnireduce.HEADER).items())


@pytest.mark.parametrize("program", ["atp", "esa"])
def test_the_second_header_of_shared_slots_follows_the_first(tmp_path, program):
    headers = header_types(tmp_path, program, 5)
    assert list(headers["pooled_t"].items()) == list(wire.field_bits(pooling.POOLED).items())
    whole = [*wire.field_bits().items(), *headers["pooled_t"].items()]
    assert whole == list(wire.field_bits(pooling.HEADER).items())
    assert sum(headers["values_t"].values()) == 8 * (
        pooling.datagram_bytes(5) - pooling.HEADER_BYTES
    )


KINDS = {
    "pooling": (
        "p4/include/pooling.p4",
        {
            **{kind.name: kind.value for kind in pooling.Kind},
            **{flag.name: flag.value for flag in pooling.Flag},
        },
    ),
    "switchml": ("p4/include/headers.p4", {kind.name: kind.value for kind in wire.Kind}),
    "omnireduce": (
        "p4/omnireduce.p4",
        {**{kind.name: kind.value for kind in omnireduce.Kind}, "BARE": omnireduce.BARE},
    ),
}


@pytest.mark.parametrize("program", KINDS)
def test_kinds_have_the_same_numbers(program):
    path, kinds = KINDS[program]
    found = re.findall(r"^const bit<8> +(\w+) += (\w+);", (ROOT / path).read_text(), re.MULTILINE)
    assert {name: int(number, 0) for name, number in found} == kinds
