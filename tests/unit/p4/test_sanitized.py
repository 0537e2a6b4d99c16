"""The aggregation program under sanitizers: malformed frames, cut anywhere, and any tables."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from switch_sanitized import Sanitized

from p4native.switch import Exact, Lpm, Match, Ternary
from p4native.switch.model import Key, Table

ROOT = Path(__file__).resolve().parents[3]
LANES = 70
AGGREGATOR = 0x0A00FFFE


@pytest.fixture(scope="module")
def switchml(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The program's JSON for 70 lanes (one full word and a short one)."""
    folder = tmp_path_factory.mktemp("switchml")
    output = folder / "switchml.json"
    info = folder / "switchml.p4info.txtpb"
    command = [sys.executable, "-m", "p4native.compiler", str(ROOT / "p4" / "switchml.p4")]
    command += [f"-DLANES={LANES}", "-DSLOTS=4", "-o", str(output), "--p4runtime-files", str(info)]
    subprocess.run(command, cwd=ROOT, check=True)
    return output.read_text()


def contribution(rng: random.Random, slot: int, tag: int) -> bytes:
    """A frame that the program takes for a contribution, values and all (no IPv4 checksum)."""
    size = 40 + 4 * LANES
    ethernet = bytes.fromhex("02000000fffe020000000001") + b"\x08\x00"
    head = struct.pack(">BBHHHBBHII", 0x45, 0, size, 0, 0, 64, 17, 0, 0x0A000001, AGGREGATOR)
    words = struct.unpack(">10H", head)
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:]
    udp = struct.pack(">HHHH", 48866, 48864, size - 20, 0)
    chunk = struct.pack(">BBHHBBI", 1, rng.randrange(4), 1, slot, rng.randrange(256), 0, tag)
    return ethernet + head + udp + chunk + rng.randbytes(4 * LANES)


def damage(rng: random.Random, frame: bytes) -> bytes:
    choice = rng.randrange(4)
    if choice == 0:
        return frame
    if choice == 1:
        return frame[: rng.randrange(len(frame) + 1)]
    at = rng.randrange(len(frame))
    if choice == 2:
        return frame[:at] + rng.randbytes(1) + frame[at + 1 :]
    return frame + rng.randbytes(rng.randrange(400))


def any_match(rng: random.Random, key: Key) -> Match:
    value = rng.choice((0, 1, 2, (1 << key.bits) - 1, AGGREGATOR % (1 << key.bits)))
    if key.kind == "lpm":
        length = rng.randrange(key.bits + 1)
        return Lpm(value >> key.bits - length << key.bits - length, length)
    if key.kind == "ternary":
        mask = rng.getrandbits(key.bits)
        return Ternary(value & mask, mask)
    return Exact(value)


def fill(rng: random.Random, native: Sanitized, table: Table) -> None:
    for _ in range(6 if table.keys and not table.const_entries else 0):
        action = rng.choice(table.actions)
        args = [rng.getrandbits(p.bits) for p in action.params]
        native.table_add(table.name, [any_match(rng, k) for k in table.keys], action.name, args)


def test_malformed_frames_and_any_tables_are_survived(switchml: str) -> None:
    rng = random.Random(5)
    native = Sanitized(switchml)
    for table in native.program.tables.values():
        fill(rng, native, table)
    native.set_multicast_group(1, [(port, port) for port in range(5)])
    native.set_multicast_group(7, [(9, 1), (0, 2)])
    whole = contribution(rng, 0, 1)
    frames = [whole[:n] for n in range(len(whole) + 1)]
    frames += [rng.randbytes(rng.choice((0, 14, 60, 1500, 9018, 65535))) for _ in range(30)]
    for _ in range(400):
        frame = contribution(rng, rng.randrange(5), rng.choice((0, 1, 2, 3, 2**31, 2**32 - 1)))
        frames.append(damage(rng, frame))
    for frame in frames:
        native.process(rng.choice((0, 1, 2, 511, 65535)), frame)
    assert len(native.finish()) > len(frames)


def test_contributions_are_summed_and_duplicates_are_not(switchml: str) -> None:
    """Two workers through the sanitized build: lanes of each position add, modulo 2^32."""
    rng = random.Random(6)
    native = Sanitized(switchml)
    members = native.program.tables["SwitchmlIngress.sender.members"]
    values = {"job_index": 0, "all_workers": 3, "first_slot": 0, "slots": 4, "group": 7}
    for rank in range(2):
        given = {**values, "worker": 1 << rank, "parent": 511}
        action = members.actions[0]
        args = [given[p.name] for p in action.params]
        native.table_add(members.name, [Exact(rank + 1), Exact(1)], action.name, args)
        key = [Exact(rank + 1), Exact(1)]
        args = [0x020000000001, 0x0A000001, 48866]
        native.table_add("SwitchmlEgress.results", key, "SwitchmlEgress.to_worker", args)
    native.set_multicast_group(7, [(1, 1), (2, 2)])
    frames = [contribution(rng, 0, 1) for _ in range(2)]
    frames = [f[:43] + b"\0" + f[44:] for f in frames]
    frames[1] = frames[1][:43] + b"\0" + frames[1][44:]
    first = native.process(1, frames[0])
    again = native.process(1, frames[0])
    last = native.process(2, frames[1])
    answers = native.finish()
    assert answers[first] == answers[again] == []
    sent = [struct.unpack(f">{LANES}I", f[54:]) for f in frames]
    want = [(a + b) % 2**32 for a, b in zip(*sent, strict=True)]
    copies: list[tuple[int, bytes]] = answers[last]  # type: ignore[assignment]
    assert [port for port, _ in copies] == [1, 2]
    for _, frame in copies:
        assert list(struct.unpack(f">{LANES}I", frame[54:])) == want
