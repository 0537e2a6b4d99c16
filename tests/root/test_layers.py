"""Iterations of `layers` on real links, where Gloo brings a transport of its own: right sums, and
passes that take their time."""

from __future__ import annotations

import pytest

from agglab.testbed.base.token_bucket import burst_bytes

pytestmark = pytest.mark.root

RATE_BPS, FRAME_BYTES = 50_000_000, 1514
TEXT = """
name: iterations
system: {system}
seed: 5
topology: {{kind: rack, workers: 3}}
links: {{rate: {rate_bps}bit}}
workload: {{kind: layers, model: alexnet, accelerator: p100, stands_for: 10gbit, scale: 1000,
  bucket: 25MB, rounds: 3, priorities: true}}
"""


@pytest.mark.long
@pytest.mark.parametrize("system", ["switchml", "ring", "gloo"])
def test_sums_are_right_and_passes_take_their_time(scenario, system: str) -> None:
    ended = scenario.run(scenario.write(TEXT.format(system=system, rate_bps=RATE_BPS)))
    assert ended.code == 0, ended.out + ended.err
    metrics = ended.metrics
    assert (metrics["exact"], metrics["wrong_results"], metrics["rounds"]) == (True, 0, 3)
    found = metrics["iteration"]
    assert found["buckets"] > 3
    assert found["computing_s"] == pytest.approx(64 / 2987 / 1000 * 200, rel=1e-3)
    # A round begins with a full bucket, which passes at once (docs/network.md, Rate and queue).
    saved_s = burst_bytes(RATE_BPS, FRAME_BYTES) * 8 / RATE_BPS
    assert found["time_s"] >= metrics["link_bound_s"] - saved_s > found["computing_s"]
