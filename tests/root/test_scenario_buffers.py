"""Runs on links that carry buffers of several frames, beside the same on links that do not: the
same sums, and frame for frame the same counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.root

SYSTEMS = ("switchml", "ring", "ps", "omnireduce")
FAST = """
name: fast
system: {system}
topology: {{workers: 2}}
links: {{rate: 1gbit}}
switch: {{lanes: 64}}
workload: {{elements: 100_000, rounds: 2, dtype: int32, window: 64}}
expect: {{exact: true, links_as_predicted: true}}
"""
SMALL_QUEUE = "links.queue=30kB"
"""Frames of 1514 bytes that are in flight could overflow it, and none of these runs' do."""


def carried(ended: Any) -> list[str]:
    (choice,) = json.loads((ended.folder / "manifest.json").read_text())["buffers"]
    return list(choice)


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_buffers_change_no_count(scenario, system: str) -> None:
    path = scenario.write(FAST.format(system=system))
    buffered = scenario.run(path)
    assert carried(buffered) == ["carried"]
    single = scenario.run(path, "--set", SMALL_QUEUE)
    assert carried(single) != ["carried"]
    for ended in (buffered, single):
        assert ended.metrics["exact"] is True and ended.metrics["links_as_predicted"] is True
        assert [found["kind"] for found in ended.metrics["findings"]] == []
    for name, link in buffered.metrics["links"].items():
        for direction, way in link.items():
            other = single.metrics["links"][name][direction]
            assert way["predicted_bytes"] == other["predicted_bytes"]
            assert way["bytes"] > 0
