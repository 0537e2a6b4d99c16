"""Every fault that a scenario can name is one that the control part carries out."""

from __future__ import annotations

from agglab.testbed import faults
from agglab.testbed.control.fault import FaultProcess


def actions(union: object) -> set[type]:
    """The classes of a union of faults; its members are names of unions or of classes."""
    found: set[type] = set()
    for name in str(union).split(" | "):
        member = getattr(faults, name)
        found |= {member} if isinstance(member, type) else actions(member)
    return found


def test_the_table_of_faults_has_every_action() -> None:
    assert set(FaultProcess.STEPS) == actions(faults.Action)
    assert len(actions(faults.Action)) == 9


def test_an_action_of_its_own_is_no_subclass_of_another() -> None:
    """The table is asked by the exact class."""
    for action in FaultProcess.STEPS:
        assert action.__bases__ == (object,)
