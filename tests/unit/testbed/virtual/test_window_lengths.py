"""Windows of virtual time are as long as it takes to send the shortest frame that there is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agglab.testbed.backend import MustRepeat
from agglab.testbed.paths import REPOSITORY
from agglab.testbed.virtual import CompiledProgram, VirtualBackend
from agglab.topologies import Direction, two_tier

NS_PER_S = 1_000_000_000
RATE_BPS = 8_000_000
"""A byte takes a microsecond."""
LONG, SHORT, FRAMES = 1000, 60, 200
LATER = 1300
"""One host's first frame is longer, so that what follows comes 300 us after the other host's. A
window of 897 us has both: the shortest of the frames that count as long as LONG have 897 bytes."""
CUTS = """
#include <core.p4>
#include <v1model.p4>
header data_t { bit<16> keep; bit<8> hops; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.hops = h.d.hops - 1;
        if (h.d.hops == 0) { mark_to_drop(s); } else { s.egress_spec = s.ingress_port ^ 3; }
        truncate((bit<32>)h.d.keep);
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
"""
"""A switch that cuts what comes at one of two ports and sends it by the other, unless this was the
last hop."""
HOPS = 3


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory) -> CompiledProgram:
    folder = tmp_path_factory.mktemp("program")
    source, output = folder / "cuts.p4", folder / "cuts.json"
    source.write_text(CUTS)
    included = ["-I", str(REPOSITORY / "tests/packets")]
    command = [sys.executable, "-m", "agglab.compiler", *included, str(source), "-o", str(output)]
    subprocess.run(command, check=True)
    return CompiledProgram(output)


def windows(program: CompiledProgram, frames: list[bytes]) -> int:
    """Sends frames from each of two hosts to the switch of the other one, through two parts of a
    network. Returns how many windows there were. All that happens happens in them."""
    graph, direction = two_tier(2, 1), Direction(rate_bps=RATE_BPS)
    for link in graph.links:
        graph = graph.with_link(link.name, direction, direction)
    switches = {switch.name: program for switch in graph.switches}
    with VirtualBackend(graph, 1, switches, parts=2) as backend:
        backend.clock.library.clock_always_in_windows(backend.clock.address)
        for host, first in zip(graph.hosts, (LONG, LATER), strict=True):
            backend.inject(host.name, [frame(first), *frames])
        backend.wait(NS_PER_S)
        received = {node.name: node.received for node in backend.statistics().nodes}
        assert received == {"h1": 0, "h2": 0} | dict.fromkeys(switches, 2 + 2 * len(frames))
        count, inside = backend.clock.windows
        assert inside == backend.clock.happened
        return count


def frame(length: int, keep: int = 0xFFFF) -> bytes:
    return keep.to_bytes(2, "big") + bytes([HOPS]) + bytes(length - 3)


def test_windows_are_short_while_a_short_frame_is_under_way(cuts: CompiledProgram) -> None:
    long = [frame(LONG)] * FRAMES
    assert FRAMES <= windows(cuts, long) < 1.1 * FRAMES
    assert FRAMES <= windows(cuts, [frame(SHORT), *long]) < 1.1 * FRAMES
    assert windows(cuts, [*long, frame(SHORT)]) > 1.9 * FRAMES


def test_a_run_in_which_a_switch_shortens_a_frame_is_repeated(cuts: CompiledProgram) -> None:
    with pytest.raises(MustRepeat):
        windows(cuts, [frame(LONG, keep=SHORT)])
