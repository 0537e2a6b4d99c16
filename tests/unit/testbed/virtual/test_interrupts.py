"""Ctrl-C in virtual time ends the run, and nothing is lost that Python was asked to do."""

from __future__ import annotations

import ctypes
import signal
import threading

import pytest

from agglab.testbed.virtual.clock import ACTIONS_A_CALL, Clock


def interrupt_at(clock: Clock, time_ns: int) -> None:
    """Sends SIGINT from C code, so that Python handles it in the next function that C calls."""
    arguments = ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
    act = ctypes.cast(ctypes.pythonapi.PyErr_SetInterrupt, ctypes.c_void_p)
    ctypes.CFUNCTYPE(None, *arguments)(("clock_at", clock.library))(
        clock.address, time_ns, act, None, 0
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_ctrl_c_ends_the_run_after_what_python_is_asked_next(clock: Clock) -> None:
    done: list[int] = []
    interrupt_at(clock, 5)
    clock.at(5, done.append, 1)
    clock.at(5, done.append, 2)
    clock.at(6, done.append, 3)
    with pytest.raises(KeyboardInterrupt):
        clock.run(10, lambda: False)
    assert (done, clock.now_ns) == ([1], 5)
    assert not clock.run(10, lambda: False)
    assert done == [1, 2, 3]


def test_ctrl_c_ends_a_run_that_asks_python_nothing(clock: Clock) -> None:
    for time_ns in range(ACTIONS_A_CALL + 1):
        interrupt_at(clock, time_ns)
    with pytest.raises(KeyboardInterrupt):
        clock.run(2 * ACTIONS_A_CALL, lambda: False)
    assert clock.now_ns == ACTIONS_A_CALL - 1


def test_handlers_are_in_place_again_after_a_run(clock: Clock) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    clock.run(10, lambda: False)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_clock_runs_in_any_thread(clock: Clock) -> None:
    done: list[int] = []
    clock.at(5, done.append, 1)
    thread = threading.Thread(target=clock.run, args=(10, lambda: False))
    thread.start()
    thread.join()
    assert done == [1]
