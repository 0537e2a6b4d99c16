"""Hashes as hosts compute them, against our compiler and switch, and against published values."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agglab.hosts.hashes import ALGORITHMS, hash_place, packed
from p4native.switch import Pipeline

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header data_t { bit<16> a; bit<3> b; bit<13> c; bit<48> d; bit<32> e; bit<64> whole; bit<64> odd; bit<16> place; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        hash(h.d.whole, HashAlgorithm.ALGORITHM, 64w0, { h.d.a, h.d.d, h.d.e }, 64w0xffffffffffffffff);
        hash(h.d.odd, HashAlgorithm.ALGORITHM, 64w0, { h.d.b, h.d.a, h.d.e }, 64w0xffffffffffffffff);
        hash(h.d.place, HashAlgorithm.ALGORITHM, 16w1000, { h.d.a, h.d.b, h.d.c, h.d.d }, 16w97);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
"""  # noqa: E501
DATA = struct.Struct("!HH6sIQQH")


@pytest.fixture(params=sorted(ALGORITHMS))
def hashing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Pipeline]]:
    source, output = tmp_path / "hashing.p4", tmp_path / "hashing.json"
    source.write_text(PROGRAM.replace("ALGORITHM", request.param))
    command = [
        sys.executable,
        "-m",
        "p4native.compiler",
        "-I",
        str(ROOT / "toolchain/tests/packets"),
    ]
    subprocess.run([*command, str(source), "-o", str(output)], cwd=ROOT, check=True)
    with Pipeline.load(output) as pipeline:
        yield request.param, pipeline


@pytest.mark.long(but=["crc16"])
def test_a_host_finds_what_the_program_finds(hashing: tuple[str, Pipeline]) -> None:
    algorithm, pipeline = hashing
    chance = random.Random(algorithm)
    everything = 2**64 - 1
    for _ in range(300):
        a, b, c = (chance.getrandbits(bits) for bits in (16, 3, 13))
        d, e = chance.getrandbits(48), chance.getrandbits(32)
        frame = DATA.pack(a, b << 13 | c, d.to_bytes(6, "big"), e, 0, 0, 0)
        ((_, out),) = pipeline.process(2, frame)
        *_, whole, odd, place = DATA.unpack(out)
        a16, b3, c13, d48, e32 = (a, 16), (b, 3), (c, 13), (d, 48), (e, 32)
        assert whole == hash_place(algorithm, [a16, d48, e32], 0, everything)
        assert odd == hash_place(algorithm, [b3, a16, e32], 0, everything)
        assert place == hash_place(algorithm, [a16, b3, c13, d48], 1000, 97)


def test_published_values() -> None:
    """The check values of the catalogue of CRCs; the example of RFC 1071, section 3."""
    digits = [(byte, 8) for byte in b"123456789"]
    assert hash_place("crc32", digits) == 0xCBF43926
    assert hash_place("crc16", digits) == 0xBB3D
    example = [(word, 16) for word in (0x0001, 0xF203, 0xF4F5, 0xF6F7)]
    assert hash_place("csum16", example) == 0xDDF2 ^ 0xFFFF


def test_bits_are_packed_from_the_highest() -> None:
    assert packed([(1, 1), (0, 2), (0x1F, 5), (3, 2)]) == bytes([0b10011111, 0b11000000])
    assert packed([]) == b""
    with pytest.raises(KeyError):
        hash_place("md5", [])
