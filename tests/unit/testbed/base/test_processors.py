"""Threads on all processors that a run may use."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agglab.testbed.base import processors
from agglab.testbed.base.processors import in_threads
from agglab.testbed.scenario import ScenarioError
from agglab.topologies import rack

THREADS, VALUES = 2, 20


@pytest.fixture
def pending_are_cancelled(monkeypatch) -> threading.Event:
    """An event that is set as soon as no further call can begin."""
    cancelled, shutdown = threading.Event(), ThreadPoolExecutor.shutdown

    def noted(self: ThreadPoolExecutor, wait: bool = True, cancel_futures: bool = False) -> None:
        shutdown(self, wait=wait, cancel_futures=cancel_futures)
        if cancel_futures:
            cancelled.set()

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", noted)
    return cancelled


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_have_the_order_of_the_values(count: int) -> None:
    assert in_threads(count, lambda value: value * value, range(9)) == [n * n for n in range(9)]


def test_calls_take_place_at_the_same_time() -> None:
    together = threading.Barrier(THREADS, timeout=60)
    in_threads(THREADS, lambda _: together.wait(), range(2 * THREADS))


def test_one_thread_is_the_callers() -> None:
    (thread,) = in_threads(1, lambda _: threading.current_thread(), [0])
    assert thread is threading.current_thread()


def fail() -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (fail, ZeroDivisionError),
        (lambda: os.kill(os.getpid(), signal.SIGINT), KeyboardInterrupt),
    ],
)
def test_no_call_begins_after_an_exception(end, raised, at, pending_are_cancelled) -> None:
    begun = []

    def call(value: int) -> None:
        begun.append(value)
        if value == at:
            end()
        assert pending_are_cancelled.wait(60)

    with pytest.raises(raised):
        in_threads(THREADS, call, range(VALUES))
    assert len(begun) <= THREADS + 1


def test_one_processor_for_small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processors.VARIABLE, "5")
    monkeypatch.setattr(processors, "HOSTS_MIN", 8)
    assert processors.for_network(rack(7)) == 1
    assert processors.for_network(rack(8)) == 5
    monkeypatch.delenv(processors.VARIABLE)
    assert processors.allowed() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("value", ["0", "two", "-1", "1.5", "²", "99999"])
def test_a_number_of_processors_that_is_none_is_refused(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(processors.VARIABLE, value)
    with pytest.raises(ScenarioError, match=f"AGGLAB_PROCESSORS: '{value}' is not a whole number"):
        processors.allowed()
