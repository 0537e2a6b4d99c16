"""Walks: sound where all is right, found and made small where the switch or its model is not."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from own_program import AGGREGATION, own_program

from agglab.systems.switchml.verification import worker_model
from agglab.systems.switchml.verification.setting import from_values
from agglab.systems.switchml.verification.switch_model import COUNTED, Decision, SwitchModel
from agglab.systems.switchml.verification.world import LAWFUL, Walks
from agglab.testbed.base.paths import REPOSITORY
from agglab.verification.explore import walk
from agglab.verification.explore.command import main
from agglab.verification.explore.search import Subject, minimal_walk, replay, try_seed, write_walk
from agglab.verification.trial import native

PROGRAM = REPOSITORY / "p4" / "switchml.p4"
SEEDS = range(0, 160, 2)
KEPT = (1_000_068,)
"""Found wrong once: what a first gap makes due is due at once."""
STALE = ("meta.stale = used && ahead[31:31] == 1;", "meta.stale = false;")


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject("switchml", PROGRAM)


def test_nothing_is_wrong(subject: Subject) -> None:
    found = {seed: try_seed(seed, subject).finding for seed in (*SEEDS, *KEPT)}
    assert {seed: finding for seed, finding in found.items() if finding} == {}


def test_a_seed_is_one_walk_and_every_kind_of_step_comes(subject: Subject) -> None:
    system = Walks(native(subject.compiled.json))
    walks = [walk.draw(seed, system) for seed in SEEDS]
    assert walks == [walk.draw(seed, system) for seed in SEEDS]
    kinds = {step.kind for each in walks for step in each.steps}
    assert kinds == {*LAWFUL, "send"}
    told: list[str] = []
    again: list[str] = []
    assert walk.attempt(walks[0], system, told) is None
    assert walk.attempt(walks[0], system, again) is None
    assert told and told == again


def test_every_decision_of_a_switch_comes(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[Decision] = set()
    real = SwitchModel.process

    def process(model: SwitchModel, port: int, frame: bytes) -> object:
        decision, outs = real(model, port, frame)
        seen.add(decision)
        return decision, outs

    monkeypatch.setattr(SwitchModel, "process", process)
    for seed in SEEDS:
        try_seed(seed, subject)
    assert seen == set(Decision)


@pytest.mark.long(but=["meta.stale = used && ahead[31:31] == 1;-meta.stale = false;"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        STALE,
        ("            || hdr.udp.len + 20 != hdr.ipv4.total_len) {", "            || false) {"),
        ("meta.fresh ? 0 : present", "present"),
        ("contribution_stale.count(meta.job);", ""),
    ],
)
def test_a_broken_switch_is_found_soon(old: str, new: str, tmp_path: Path) -> None:
    wrong = Subject("switchml", own_program(tmp_path, (AGGREGATION, old, new)))
    assert any(try_seed(seed, wrong).finding for seed in range(0, 200, 2))


@pytest.mark.long
def test_what_is_found_is_small_and_can_be_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Subject("switchml", own_program(tmp_path, (AGGREGATION, *STALE)))
    seed = next(seed for seed in range(0, 100, 2) if try_seed(seed, wrong).finding)
    finding = try_seed(seed, wrong).finding
    assert finding is not None
    small, again = minimal_walk(seed, finding, wrong)
    assert again.kind == finding.kind and len(small.steps) <= 6
    path = write_walk(small, "found", tmp_path)
    assert walk.read(path, from_values) == small
    out = io.StringIO()
    assert replay(path, wrong, out) == 1
    assert str(again) in out.getvalue()
    assert main(["--replay", str(path), "--program", str(PROGRAM)]) == 0
    assert capsys.readouterr().out.endswith("nothing is wrong\n")


def test_files_that_are_no_walk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "walk.json"
    for text in ("", "[]", "{}", '{"setting": {}, "steps": []}', '{"setting": 1, "steps": 2}'):
        path.write_text(text)
        assert main(["--replay", str(path)]) == 2
        assert capsys.readouterr().err.startswith(f"{path}: ")
    assert main(["--replay", str(tmp_path / "none.json")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["--replay", str(path), "--system", "ring"]) == 2
    assert capsys.readouterr().err == f"{path}: ring has no walks\n"


Change = Callable[[pytest.MonkeyPatch], None]


def _attempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worker_model, "ATTEMPT_MAX", 256)


def _probes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worker_model, "BACKOFF_MAX", 5)


def _stale_uncounted(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(COUNTED, Decision.STALE, ())


@pytest.mark.parametrize("change", [_attempts, _probes, _stale_uncounted])
def test_switch_and_worker_are_held_to_their_models(
    change: Change, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that is changed is a worker or switch that is wrong."""
    change(monkeypatch)
    assert any(try_seed(seed, subject).finding for seed in range(0, 600, 2))


def test_a_smaller_setting_is_a_setting(subject: Subject) -> None:
    system = Walks(native(subject.compiled.json))
    chosen = walk.draw(6, system)
    for simpler in system.simpler(chosen.setting):
        assert walk.attempt(replace(chosen, setting=simpler), system) is None
