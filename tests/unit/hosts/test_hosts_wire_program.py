"""hosts/wire.py and p4/switchml.p4 have the same packet layout: field names, order and widths."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agglab.hosts import wire

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("lanes", [1, 365])
def test_the_compiled_program_has_the_same_header(tmp_path, lanes):
    product = tmp_path / "switchml.json"
    command = [
        sys.executable,
        "-m",
        "agglab.compiler",
        "p4/switchml.p4",
        "-I",
        "p4",
        "-o",
        str(product),
    ]
    subprocess.run([*command, f"-DLANES={lanes}", "-DSLOTS=4"], cwd=ROOT, check=True)
    headers = {
        header["name"]: {name: bits for name, bits, *_ in header["fields"]}
        for header in json.loads(product.read_text())["header_types"]
    }
    assert list(headers["aggregation_t"].items()) == list(wire.field_bits().items())
    shape_bits = sum(wire.field_bits(wire.SHAPE).values())
    assert headers["opening_t"] == {"smallest": shape_bits, "largest": shape_bits}
    assert sum(headers["values_t"].values()) == 8 * (wire.datagram_bytes(lanes) - wire.HEADER_BYTES)
