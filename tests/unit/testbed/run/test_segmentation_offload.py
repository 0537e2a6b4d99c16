"""Which links carry several frames as one buffer: those where nobody could tell."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from agglab.testbed.run import segmentation_offload
from agglab.testbed.scenario import ResolvedScenario, load

FAST = {"links": {"rate": "1gbit"}}


def resolved(folder: Any, **keys: Any) -> ResolvedScenario:
    document = {"name": "x", "topology": {"kind": "rack", "workers": 2}, **FAST, **keys}
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump(document))
    return load(path).points[0].resolved


def test_fast_links_without_impairments_do(tmp_path: Any) -> None:
    found = resolved(tmp_path)
    assert segmentation_offload.carrying(found) == {"h1-s1", "h2-s1"}
    assert segmentation_offload.choice(found) == {"carried": ["h1-s1", "h2-s1"]}


SINGLE: dict[str, tuple[dict[str, Any], str]] = {
    "virtual": ({"backend": "virtual"}, "virtual links"),
    "bmv2": ({"switch": {"target": "bmv2"}}, "switches of target bmv2 take single frames"),
    "tcp": ({"system": "gloo"}, "agents of gloo have a transport of their own"),
    "loss": ({"links": {"rate": "1gbit", "loss": "1%"}}, "impairments decide"),
    "delay": ({"links": {"rate": "1gbit", "delay": "1ms"}}, "a delay holds"),
    "slow": ({"links": {"rate": "100mbit"}}, "the token bucket holds less"),
    "queue": ({"links": {"rate": "1gbit", "queue": "20kB"}}, "256 frames in flight can overflow"),
    "fault": (
        {"faults": [{"kind": "link_down", "at": "1s", "for": "1s", "link": "h1-s1"}]},
        "faults take effect",
    ),
}


@pytest.mark.parametrize(("keys", "why"), SINGLE.values(), ids=SINGLE)
def test_others_stay_single(tmp_path: Any, keys: dict[str, Any], why: str) -> None:
    found = resolved(tmp_path, **keys)
    assert segmentation_offload.carrying(found) == frozenset()
    (reason,) = segmentation_offload.choice(found)
    assert reason.startswith(why)


def test_each_link_is_judged_by_itself(tmp_path: Any) -> None:
    overrides = [{"match": "h2-s1", "loss": "1%"}]
    found = resolved(tmp_path, links={"rate": "1gbit", "overrides": overrides})
    assert segmentation_offload.carrying(found) == {"h1-s1"}
    assert list(segmentation_offload.choice(found)) == [
        "carried",
        "impairments decide on each frame",
    ]
