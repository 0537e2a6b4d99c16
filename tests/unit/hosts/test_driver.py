"""When a worker reports how far it is: on a clock of the test's own."""

from __future__ import annotations

import pytest

from agglab.hosts import driver
from agglab.hosts.driver import PROGRESS_INTERVAL_NS, ReceiveCoalescing, run_round


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0


class Worker:
    """Has nothing to send and hears nothing for four intervals."""

    deadline_ns = 1 << 62
    in_flight = 1

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.counters = {"received": 0}

    @property
    def done(self) -> bool:
        return self._clock.now_ns >= 4 * PROGRESS_INTERVAL_NS

    def poll(self, _: int) -> list[int]:
        return []

    def on_datagrams(self, _: int, __: object) -> int:
        return 0


class Link:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def send(self, _: int) -> None: ...

    def receive(self, _: int, wait_ns: int) -> None:
        self._clock.now_ns += wait_ns


def test_whoever_looks_after_an_interval_has_a_report_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The screen is drawn as often, and would show 0 of a worker whose report comes just later."""
    clock = Clock()
    monkeypatch.setattr(driver.time, "monotonic_ns", lambda: clock.now_ns)
    reports: list[int] = []
    run_round(Worker(clock), Link(clock), ReceiveCoalescing(), reports.append)
    assert [at / PROGRESS_INTERVAL_NS for at in reports[:4]] == [0.5, 1.5, 2.5, 3.5]
