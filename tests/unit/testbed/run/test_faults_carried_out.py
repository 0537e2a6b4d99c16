"""Every fault that a scenario can name is one that the control part carries out."""

from __future__ import annotations

import pytest

from agglab.testbed.run.fault import FaultProcess
from agglab.testbed.schema import faults
from agglab.testbed.schema.faults import (
    AgentCrash,
    AgentPause,
    AgentSlow,
    Attack,
    Impair,
    LinkDown,
    RateChange,
    SwitchReprogram,
    SwitchRestart,
)
from agglab.topologies.graph import Corrupt, Drop

ONE_WAY, BOTH_WAYS = ("h1->s1",), ("h1->s1", "s1->h1")


def actions() -> set[type]:
    """The classes that say what a fault does: those of the union that have no subclasses."""
    members = (getattr(faults, name) for name in str(faults.Action).split(" | "))
    return {action for member in members for action in member.__subclasses__() or [member]}


def test_the_table_of_faults_has_every_action() -> None:
    assert set(FaultProcess.STEPS) == actions()
    assert len(actions()) == 9


def test_an_action_of_its_own_is_no_subclass_of_another() -> None:
    """The table is asked by the exact class."""
    for action in FaultProcess.STEPS:
        assert not set(action.__mro__[1:]) & set(FaultProcess.STEPS)


@pytest.mark.parametrize(
    ("action", "target"),
    [
        (LinkDown("h1-s1"), "h1-s1"),
        (RateChange("h1-s1", ONE_WAY, 1), "h1-s1"),
        (Impair("h1-s1", ONE_WAY, Drop(0.1)), "h1-s1"),
        (AgentPause(1, "h1", "worker"), "h1"),
        (SwitchReprogram("s1"), "s1"),
        (Attack("h2", 1, 1.0), "h2"),
    ],
)
def test_an_action_says_what_it_acts_on(action: faults.Action, target: str) -> None:
    assert action.target == target


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LinkDown("h1-s1"), LinkDown("h1-s1")),
        (RateChange("h1-s1", ONE_WAY, 1), RateChange("h1-s1", ONE_WAY, 2)),
        (Impair("h1-s1", ONE_WAY, Drop(0.1)), Impair("h1-s1", ONE_WAY, Drop(0.2))),
        (AgentPause(1, "h1", "worker"), AgentCrash(1, "h1", "worker")),
        (AgentSlow(1, "h1", "worker", 0.1), AgentSlow(1, "h1", "worker", 0.2)),
        (SwitchRestart("s1", 0.1), SwitchReprogram("s1")),
        (Attack("h1", 1, 1.0), Attack("h1", 2, 2.0)),
    ],
)
def test_faults_that_must_not_overlap(one: faults.Action, other: faults.Action) -> None:
    assert one.claim == other.claim


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LinkDown("h1-s1"), LinkDown("h2-s1")),
        (LinkDown("h1-s1"), RateChange("h1-s1", BOTH_WAYS, 1)),
        (RateChange("h1-s1", ONE_WAY, 1), RateChange("h1-s1", BOTH_WAYS, 1)),
        (Impair("h1-s1", ONE_WAY, Drop(0.1)), Impair("h1-s1", ONE_WAY, Corrupt(0.1))),
        (AgentPause(1, "h1", "worker"), AgentPause(2, "h1", "worker")),
        (AgentPause(1, "h1", "worker"), AgentPause(1, "h1", "server")),
        (AgentPause(1, "h1", "worker"), AgentSlow(1, "h1", "worker", 0.1)),
        (SwitchReprogram("s1"), SwitchReprogram("s2")),
    ],
)
def test_faults_that_may_overlap(one: faults.Action, other: faults.Action) -> None:
    assert one.claim != other.claim
