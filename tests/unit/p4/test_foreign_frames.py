"""No frame of `attack` gets past the switch as a result, and each is counted as its kind says."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from frames import AGGREGATOR, AGGREGATOR_MAC, ipv4, worker_address, worker_mac

from agglab.systems.switchml.system import SwitchML
from agglab.testbed.scenario import ResolvedScenario, resolve
from agglab.testbed.schema.network_sections import Switch
from agglab.testbed.schema.scenario import JobSection, Scenario
from agglab.testbed.systems.summing import attack
from agglab.testbed.systems.summing.counters import COUNTERS
from p4native.switch import Exact, Pipeline

LANES = 5
ATTACKER_PORT = 4
REFUSALS = ("refused", "forged", "malformed", "forwarded", "unroutable")
TAG_TYPES = (0x8100, 0x88A8, 0x9100)
MAX_TAGS = 4


@pytest.fixture
def pipeline(programmed: Callable[[int], Pipeline]) -> Pipeline:
    """With the attacker's own address at its port."""
    pipeline = programmed(LANES)
    owner = int.from_bytes(worker_address(4), "big")
    sources, set_owner = (
        f"SwitchmlIngress.forwarding.{n}" for n in ("sources", "set_owner_address")
    )
    pipeline.tables.add(sources, [Exact(ATTACKER_PORT)], set_owner, [owner])
    return pipeline


def counts(pipeline: Pipeline) -> dict[str, int]:
    found = {}
    for kind in REFUSALS:
        (name,) = (n for n in pipeline.program.counters if n.endswith(f".{COUNTERS[kind].name}"))
        size = pipeline.program.counters[name].size
        found[kind] = sum(pipeline.counters.read(name, index)[0] for index in range(size))
    return found


def attacked() -> ResolvedScenario:
    switch = Switch(lanes=LANES, slots=4)
    victim = JobSection(name="a", workers=("h[123]",))
    return resolve(Scenario(name="attacked", switch=switch, jobs=(victim,)))


def test_every_kind_is_counted_by_its_counter_and_none_is_answered(pipeline: Pipeline) -> None:
    frames = SwitchML().attack("7", attacked(), "h4")
    seen = set()
    for kind, frame in islice(frames, 40 * len(attack.KINDS)):
        before = counts(pipeline)
        out = pipeline.process(ATTACKER_PORT, frame)
        now = counts(pipeline)
        counted = attack.KINDS[kind].counted
        assert now == {**before, counted: before[counted] + 1}, kind
        assert all(copy == frame for _, copy in out), kind
        assert bool(out) == (counted == "forwarded"), kind
        seen.add(kind)
    assert seen == set(attack.KINDS)


def tagged(tags: list[tuple[int, int]], body: bytes, ethertype: int = 0x0800) -> bytes:
    types = [kind for kind, _ in tags] + [ethertype]
    frame = worker_mac(1) + worker_mac(4) + struct.pack("!H", types[0])
    for (_, control), following in zip(tags, types[1:], strict=True):
        frame += struct.pack("!HH", control, following)
    return frame + body


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_tags_the_innermost_address_is_judged(pipeline: Pipeline, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        tags = [(chance.choice(TAG_TYPES), chance.randrange(1 << 16)) for _ in range(9)]
        tags = tags[: chance.randrange(10)]
        source = chance.choice((AGGREGATOR, worker_address(2), worker_address(4)))
        frame = tagged(tags, ipv4(b"", source, worker_address(1)))
        before = counts(pipeline)
        out = pipeline.process(ATTACKER_PORT, frame)
        kind = "forwarded" if source == worker_address(4) else "forged"
        kind = "malformed" if len(tags) > MAX_TAGS else kind
        assert counts(pipeline) == {**before, kind: before[kind] + 1}
        assert {copy for _, copy in out} == ({frame} if kind == "forwarded" else set())


def test_a_port_that_leads_to_no_host_may_bring_any_hosts_packets(pipeline: Pipeline) -> None:
    """From another switch, which has judged them."""
    for source in (2, 4):
        frame = tagged([], ipv4(b"", worker_address(source), worker_address(1)))
        assert pipeline.process(ATTACKER_PORT - 1, frame)
    assert counts(pipeline)["forwarded"] == 2 and counts(pipeline)["forged"] == 0


def test_a_tagged_frame_of_any_type_is_forwarded_as_it_came(pipeline: Pipeline) -> None:
    arp = tagged([(0x88A8, 7), (0x8100, 0x2005)], bytes(46), 0x0806)
    assert {copy for _, copy in pipeline.process(ATTACKER_PORT, arp)} == {arp}


@pytest.mark.parametrize("tags", [0, 1, 4])
def test_a_frame_cut_in_a_header_is_malformed(pipeline: Pipeline, tags: int) -> None:
    frame = tagged([(0x8100, 0)] * tags, ipv4(b"", worker_address(4), worker_address(1)))
    for length in range(len(frame)):
        assert pipeline.process(ATTACKER_PORT, frame[:length]) == []
    assert counts(pipeline)["malformed"] == len(frame)


def test_tagged_packets_are_not_routed(pipeline: Pipeline) -> None:
    """A tag that stayed would carry the packet into another VLAN than the route's."""
    packet = ipv4(b"", worker_address(4), worker_address(1))
    frame = AGGREGATOR_MAC + tagged([(0x8100, 5)], packet)[6:]
    assert pipeline.process(ATTACKER_PORT, frame) == []
    assert counts(pipeline)["unroutable"] == 1


def test_the_attack_counts_on_the_depth_that_the_program_reads() -> None:
    source = (Path(__file__).resolve().parents[3] / "p4/include/lower_headers.p4").read_text()
    assert f"#define MAX_TAGS {attack.TAGS_READ_MAX}\n" in source
    assert attack.TAGS_READ_MAX == MAX_TAGS
