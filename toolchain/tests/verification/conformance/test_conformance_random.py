"""Random programs on pairs: what counts as a difference, and what is kept of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from p4native.common.exit_codes import FAILED, PASSED
from p4native.verification.conformance import randomised
from p4native.verification.conformance.pairs import SPECIFICATION, Pair
from p4native.verification.conformance.random_case import Outcome, describe, groups, run_pairs
from p4native.verification.random_programs import draw_case

OURS, THEIRS = Pair("p4native", "native"), Pair("p4c", "bmv2")


def outcomes_by_text(wrong: str) -> Any:
    """A run_pairs where ours loses a frame if the program holds `wrong`."""

    def run(
        program: Path, script: str, pairs: Sequence[Pair], *_: object, **__: object
    ) -> dict[Pair, Outcome]:
        frames = {1: (b"\1", b"\2")}
        fewer = {1: (b"\1",)}
        bad = wrong in program.read_text() and "packet" in script
        return {pair: Outcome(fewer if bad and pair == OURS else frames) for pair in pairs}

    return run


def test_a_difference_is_made_small_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(randomised, "run_pairs", outcomes_by_text("packet.extract(hdr.h);"))
    verdict = randomised.judge_seed(5, [THEIRS, OURS], tmp_path, shrink_s=60)
    assert verdict.kind == "differ"
    folder = tmp_path / "5"
    assert (folder / "whole.p4").read_text() == draw_case(5).program
    assert (folder / "program.p4").read_text() == "packet.extract(hdr.h);\n"
    lines = (folder / "test.stf").read_text().split("\n")
    assert [line.split()[0] for line in lines if line] == ["packet", "expect", "expect"]
    assert "expect 1 02$" in lines
    assert any("only p4c + bmv2: port 1 02" in line for line in verdict.lines)
    assert any(
        line.endswith(f"-m p4native.stf {folder}/program.p4 {folder}/test.stf")
        for line in verdict.lines
    )


def test_what_p4c_refuses_is_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Outcome({}, refused="does not compile: error: no division")
    monkeypatch.setattr(
        randomised, "run_pairs", lambda *_, **__: {THEIRS: refused, OURS: Outcome({1: (b"x",)})}
    )
    verdict = randomised.judge_seed(5, [THEIRS, OURS], tmp_path, 0)
    assert (verdict.kind, verdict.lines) == ("refused", (refused.refused,))


def test_the_exit_code_and_the_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        1: randomised.Verdict(1, "agree", 24),
        2: randomised.Verdict(2, "refused", 24, ("does not compile: x",)),
        3: randomised.Verdict(3, "differ", lines=("what differs",)),
    }

    def verdicts(seeds: Sequence[int], *_: object) -> list[randomised.Verdict]:
        return [found[seed] for seed in seeds]

    monkeypatch.setattr(randomised, "_verdicts", verdicts)
    assert randomised.run([1, 2], [THEIRS, OURS], tmp_path, 1, 0) == PASSED
    assert "2 programs from seed 1, 1 of them refused by p4c, 48 packets" in capsys.readouterr().out
    assert randomised.run([1, 2, 3], [THEIRS, OURS], tmp_path, 1, 0) == FAILED
    said = capsys.readouterr().out
    assert "seed 3 differs:\nwhat differs" in said and "1 differ" in said


def test_groups_are_of_equal_outcomes_the_reference_first() -> None:
    other = Pair("p4c", "native")
    found = {
        THEIRS: Outcome({1: (b"a",)}),
        other: Outcome({1: (b"b",)}),
        OURS: Outcome({1: (b"a",)}),
    }
    assert groups(found) == [[THEIRS, OURS], [other]]
    assert "  only p4c + native: port 1 62" in describe(found)


@pytest.mark.long(but=["0"])
@pytest.mark.parametrize("seed", (*range(13), 31, 60))
def test_compiler_and_switch_do_what_the_specification_says(seed: int, tmp_path: Path) -> None:
    case = draw_case(seed)
    program = tmp_path / "program.p4"
    program.write_text(case.program)
    found = run_pairs(program, case.script(), [OURS, SPECIFICATION], tmp_path)
    assert [str(o) for o in found.values() if o.refused or o.not_run] == []
    assert describe(found) == [f"{OURS}, {SPECIFICATION}: {found[OURS]}"]


def test_a_case_that_the_interpreter_does_not_know_is_not_compared(tmp_path: Path) -> None:
    case = draw_case(1)
    program = tmp_path / "program.p4"
    unknown = "std.egress_spec = 1;\nrandom(meta.a, 8w0, 8w1);"
    text = re.sub(r"std\.egress_spec = \d;", unknown, case.program, count=1)
    program.write_text(text)
    found = run_pairs(program, case.script(), [OURS, SPECIFICATION], tmp_path)
    assert found[OURS].frames
    assert re.fullmatch(
        r"the interpreter does not know .*program.p4:\d+:\d+: calls of random",
        found[SPECIFICATION].not_run,
    )


def test_our_own_pair_runs_a_case(tmp_path: Path) -> None:
    case = draw_case(1)
    program = tmp_path / "program.p4"
    program.write_text(case.program)
    (outcome,) = run_pairs(program, case.script(), [OURS], tmp_path).values()
    assert outcome.refused == ""
    assert sum(map(len, outcome.frames.values())) > 5
    program.write_text("control {")
    broken = tmp_path / "broken"
    broken.mkdir()
    (outcome,) = run_pairs(program, case.script(), [OURS], broken).values()
    assert outcome.refused.startswith("does not compile: error: ")
