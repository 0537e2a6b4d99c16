"""Walks of systems without models: sound where all is right; they find what no scenario does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agglab.testbed.base.paths import REPOSITORY
from agglab.verification import programs
from agglab.verification.explore import walk
from agglab.verification.explore.bags import BEGINNINGS_US, FIRST_NUMBERS, KINDS, Bags
from agglab.verification.explore.schedules import schedule
from agglab.verification.explore.search import Subject, minimal_walk, replay, try_seed, write_walk
from agglab.verification.mutants import catalogue
from agglab.verification.trial import native, try_scenario

SYSTEMS = ("atp", "esa", "libra", "mlfabric", "netrpc", "omnireduce")
SEEDS = range(0, 12, 2)
REACHING = {"atp": (18, 48), "esa": (18, 20, 26), "libra": (0, 26), "mlfabric": (18, 30)}
"""Seeds of walks that reach the states in which the programs of RARE go wrong."""
FOUND_ONCE = (("netrpc", 181), ("mlfabric", 333), ("mlfabric", 483), ("mlfabric", 721))
"""Scenarios in which something was wrong once."""
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
RARE = (
    ("atp", "atp-clock-of-32-bits", 48, "lost"),
    ("atp", "atp-last-slot-refused", 18, "hang"),
    ("esa", "esa-clock-of-32-bits", 26, "lost"),
    ("esa", "esa-kind-of-the-first", 20, "refused"),
    ("libra", "libra-jobs-share-slots", 26, "wrong sum"),
    ("libra", "libra-places-of-two-servers", 0, "wrong sum"),
    ("mlfabric", "mlfabric-jobs-share-cells", 18, "refused"),
    ("mlfabric", "mlfabric-chunk-before", 30, "wrong sum"),
)
"""Systems and mutants of the catalogue, the seed of a walk that finds each, and what is wrong."""


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
    seeds = (*SEEDS, *REACHING.get(system, ()))
    found = {seed: try_seed(seed, of).finding for seed in seeds}
    assert {seed: finding for seed, finding in found.items() if finding} == {}


@pytest.mark.long(but=["libra-libra-jobs-share-slots-26-wrong sum"])
@pytest.mark.parametrize(("system", "name", "seed", "kind"), RARE)
def test_a_fault_in_a_rare_state_is_found(
    tmp_path: Path, system: str, name: str, seed: int, kind: str
) -> None:
    """Several jobs, the last slot, chunks that drive others out in turn, wrapped clocks."""
    mutant = next(each for each in catalogue.read() if each.id == name)
    shutil.copytree(REPOSITORY / "p4", tmp_path / "p4")
    path = tmp_path / mutant.file
    path.write_text(mutant.apply(path.read_text()))
    finding = try_seed(seed, Subject(system, tmp_path / "p4" / f"{system}.p4")).finding
    assert finding and finding.kind == kind


@pytest.mark.long(but=["netrpc-181"])
@pytest.mark.parametrize(("system", "seed"), FOUND_ONCE)
def test_what_was_wrong_once_is_right(system: str, seed: int) -> None:
    assert try_seed(seed, subject(system)).finding is None


@pytest.mark.parametrize("system", ["ring", "ps"])
def test_a_switch_that_only_forwards_has_no_walks(system: str) -> None:
    assert subject(system).walks is None


def test_a_seed_is_one_walk_and_every_kind_of_step_and_number_comes() -> None:
    of = subject("netrpc")
    bags = Bags("netrpc", native(of.compiled.json))
    walks = [walk.draw(seed, bags) for seed in range(0, 120, 2)]
    assert {step.kind for each in walks for step in each.steps} == set(KINDS)
    assert {each.setting.first for each in walks} == set(FIRST_NUMBERS)
    assert {each.setting.begins_us for each in walks} == set(BEGINNINGS_US)
    assert {each.setting.jobs for each in walks} == {1, 2, 3}
    told: list[str] = []
    again: list[str] = []
    assert walk.attempt(walks[0], bags, told) is None
    assert walk.attempt(walks[0], bags, again) is None
    assert told and told == again


@pytest.mark.at_most(1)
@pytest.mark.long
@pytest.mark.parametrize("system", SIGNED)
def test_tags_that_cross_the_sign_are_found_by_walks_alone(tmp_path: Path, system: str) -> None:
    wrong = broken(tmp_path, system, *SIGNED[system])
    tried = ((seed, try_seed(seed, wrong).finding) for seed in SEEDS)
    first, finding = next((seed, finding) for seed, finding in tried if finding)
    assert finding.kind == "hang"
    for seed in range(1, 13):
        assert try_scenario(schedule(seed, system), wrong.compiled).findings == ()
    small, again = minimal_walk(first, finding, wrong)
    assert again.kind == "hang" and len(small.steps) <= 2
    path = write_walk(small, "small", tmp_path)
    with (tmp_path / "told.txt").open("w") as out:
        assert replay(path, wrong, out) == 1
        assert replay(path, subject(system), out) == 0
