"""What a `with` statement builds is built completely or not at all, and is taken down once."""

from __future__ import annotations

import pytest

from p4native.common.contexts import BuiltOnEntry, Closing


class Port(Closing):
    closed = 0

    def close(self) -> None:
        self.closed += 1


class Network(BuiltOnEntry):
    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.log: list[str] = []
        self._fails = fails

    def _build(self) -> None:
        self.log.append("built")
        self._stack.callback(self.log.append, "taken down")
        if self._fails:
            raise OSError("no room")


def test_it_is_closed_at_the_end_and_when_something_is_raised() -> None:
    with Port() as port:
        assert not port.closed
    assert port.closed == 1
    with pytest.raises(KeyError), port:
        raise KeyError
    assert port.closed == 2


def test_it_stands_until_the_end() -> None:
    with Network() as network:
        assert network.log == ["built"]
    assert network.log == ["built", "taken down"]


def test_nothing_is_left_of_what_could_not_be_built() -> None:
    network = Network(fails=True)
    with pytest.raises(OSError, match="no room"), network:
        raise AssertionError("it was entered")
    assert network.log == ["built", "taken down"]
