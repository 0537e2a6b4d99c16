"""Walks of systems without models: sound where all is right; they find what no scenario does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed.paths import REPOSITORY
from agglab.verification import programs
from agglab.verification.explore import walk
from agglab.verification.explore.bags import FIRST_NUMBERS, KINDS, Bags
from agglab.verification.explore.schedules import schedule
from agglab.verification.explore.search import Subject, minimal_walk, replay, try_seed, write_walk
from agglab.verification.trial import native, try_scenario

SYSTEMS = ("atp", "esa", "libra", "mlfabric", "netrpc", "omnireduce")
SEEDS = range(0, 24, 2)
SIGNED = {
    "netrpc": (
        "meta.stale = used && ahead[31:31] == 1;\n        meta.skips",
        "meta.stale = used && (int<32>)hdr.aggregation.tag < (int<32>)last;\n        meta.skips",
    ),
    "omnireduce": (
        "meta.stale = used && ahead[31:31] == 1;",
        "meta.stale = used && (int<32>)hdr.aggregation.tag < (int<32>)tag;",
    ),
}
"""Tags are compared as signed numbers, which is right until they cross 2^31."""


def subject(system: str) -> Subject:
    return Subject(system, programs.path(system))


def broken(folder: Path, system: str, old: str, new: str) -> Subject:
    """The system with a piece of its program replaced."""
    p4 = REPOSITORY / "p4"
    text = (p4 / f"{system}.p4").read_text()
    assert text.count(old) == 1
    path = folder / "broken.p4"
    path.write_text(text.replace(old, new).replace('"include/', f'"{p4}/include/'))
    return Subject(system, path)


@pytest.mark.long(but=["omnireduce"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_nothing_is_wrong(system: str) -> None:
    of = subject(system)
    assert all(of.is_walk(seed) for seed in SEEDS)
    found = {seed: try_seed(seed, of).finding for seed in SEEDS}
    assert {seed: finding for seed, finding in found.items() if finding} == {}


@pytest.mark.parametrize("system", ["ring", "ps"])
def test_a_switch_that_only_forwards_has_no_walks(system: str) -> None:
    assert subject(system).walks is None


def test_a_seed_is_one_walk_and_every_kind_of_step_and_number_comes() -> None:
    of = subject("netrpc")
    bags = Bags("netrpc", native(of.compiled.json))
    walks = [walk.draw(seed, bags) for seed in range(0, 120, 2)]
    assert {step.kind for each in walks for step in each.steps} == set(KINDS)
    assert {each.setting.first for each in walks} == set(FIRST_NUMBERS)
    told: list[str] = []
    again: list[str] = []
    assert walk.attempt(walks[0], bags, told) is None
    assert walk.attempt(walks[0], bags, again) is None
    assert told and told == again


@pytest.mark.long
@pytest.mark.parametrize("system", SIGNED)
def test_tags_that_cross_the_sign_are_found_by_walks_alone(tmp_path: Path, system: str) -> None:
    wrong = broken(tmp_path, system, *SIGNED[system])
    found = {seed: try_seed(seed, wrong).finding for seed in SEEDS}
    first = next(seed for seed, finding in found.items() if finding)
    finding = found[first]
    assert finding and finding.kind == "hang"
    for seed in range(1, 13):
        assert try_scenario(schedule(seed, system), wrong.compiled).findings == ()
    small, again = minimal_walk(first, finding, wrong)
    assert again.kind == "hang" and len(small.steps) <= 2
    path = write_walk(small, "small", tmp_path)
    with (tmp_path / "told.txt").open("w") as out:
        assert replay(path, wrong, out) == 1
        assert replay(path, subject(system), out) == 0
