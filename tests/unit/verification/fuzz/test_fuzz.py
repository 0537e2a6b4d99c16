"""A small part of what `python -m agglab.verification fuzz` adds to the toolchain's fuzzing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agglab.testbed import systems
from agglab.verification import fuzz
from agglab.verification.fuzz.systems import subjects
from p4native.verification.corpus import Corpus
from p4native.verification.fuzz import Target
from p4native.verification.fuzz.attempts import attempt
from p4native.verification.fuzz.command import shares

FEW = {"scenario": 25, "agents": 100, "datagrams": 100, "foreign": 2}


@pytest.mark.long(but=["datagrams"])
@pytest.mark.parametrize("kind", fuzz.TARGETS, ids=lambda kind: kind.name)
def test_some_inputs_of_each_kind(kind: type[Target], tmp_path: Path) -> None:
    tried = attempt(kind, Corpus(), 1, range(FEW[kind.name]), tmp_path)
    assert tried.inputs == FEW[kind.name]
    assert not tried.troubles, tried.troubles


def test_a_quarter_of_all_packets_goes_to_the_default_systems_program() -> None:
    chosen = subjects()
    names = [subject.name for subject in chosen]
    assert len(names) == len(set(names)) > 3, "each program once"
    counts = {subject.name: count for subject, count in shares(chosen, 1_000_000)}
    assert counts[systems.default()] == 250_000 and sum(counts.values()) == 1_000_000
    assert min(counts.values()) > 0


def test_the_command_has_the_kinds_of_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["nothing"]) == 2
    assert capsys.readouterr().err == (
        "fuzz: nothing is called 'nothing'; known: packets, names, annotations, json, p4, stf, "
        "p4runtime, scenario, agents, datagrams, foreign\n"
    )
