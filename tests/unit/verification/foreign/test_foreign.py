"""A outsider's packets at every system at work: no sum changes, and each is counted.

FOREIGN=10000 sends so many at each; `make fuzz` has more seeds.
"""

from __future__ import annotations

import os
import shutil
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from agglab.testbed import systems
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.systems.frames import End
from agglab.verification.foreign import scenario, trial
from agglab.verification.foreign.frames import FRAME_BYTES, KINDS, ForeignHost, ends_of
from agglab.verification.foreign.recorded import recorded
from agglab.verification.foreign.scenario import OUTSIDER, resolved

FRAMES = int(os.environ.get("FOREIGN", 2000))
SEEDS = (0, 1)
"""Each of the other kind of workload, where a system does two."""


@pytest.mark.long(but=["atp-0"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("system", scenario.names())
def test_foreign_packets_change_no_sum_and_are_counted(system: str, seed: int) -> None:
    tried = trial.attempt(system, FRAMES, seed)
    assert tried.troubles == ()
    assert tried.sent == dict.fromkeys(sorted(KINDS), FRAMES // len(KINDS))
    assert tried.counted["forged"] > FRAMES // 10
    assert tried.counted["malformed"] > 0


@pytest.mark.parametrize("system", scenario.names())
def test_every_seed_stands_for_a_run_and_together_for_all_workloads(system: str) -> None:
    abilities = systems.find(system).abilities
    runs = [resolved(system, 1000, seed) for seed in range(2 * len(abilities.workloads))]
    assert {run.jobs[0].work.kind for run in runs} == set(abilities.workloads)


def outsider(seed: int) -> ForeignHost:
    name = systems.default()
    same = recorded(name)
    attack = systems.find(name).attack("1", resolved(name, 100, 1, 10), OUTSIDER)
    own = End(bytes(6), bytes(4), 1)
    return ForeignHost(Random(seed), own, ends_of(same), recorded("ring"), same, attack)


def test_a_seed_has_the_same_frames_always_and_none_is_too_long() -> None:
    first, again, other = (list(islice(outsider(seed).frames(), 500)) for seed in (1, 1, 2))
    assert first == again != other
    assert all(len(frame) <= FRAME_BYTES for _, frame in first)
    assert len({frame for _, frame in first}) > 400


def test_recorded_frames_are_of_both_directions() -> None:
    for system in ("ring", systems.default()):
        frames = recorded(system)
        assert {frame[:6] for frame in frames} & {frame[6:12] for frame in frames}
        assert len(ends_of(frames)) >= 4


@pytest.mark.long(but=["fault0-job1 failed: "])
@pytest.mark.parametrize(
    ("fault", "trouble"),
    [
        (("guarded && hdr.ipv4.src != owner", "false"), "job1 failed: "),
        (("flood() {\n        forwarded.count(0);", "flood() {"), "s1 took "),
    ],
)
def test_a_switch_that_believes_or_does_not_count_is_trouble(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: tuple[str, str], trouble: str
) -> None:
    shutil.copytree(P4_FOLDER, tmp_path / "p4")
    shared = tmp_path / "p4/include/forwarding.p4"
    assert fault[0] in shared.read_text()
    shared.write_text(shared.read_text().replace(*fault))
    for name in scenario.names():
        recorded(name)  # kept from here on; with the text below they could not run
    switch = f"switch: {{{{program: {tmp_path}/p4/forwarding.p4}}}}\n"
    monkeypatch.setattr(scenario, "TEXT", f"{scenario.TEXT}{switch}")
    found = trial.attempt("ring", 1000, 1).troubles
    assert any(text.startswith(trouble) for text in found), found
