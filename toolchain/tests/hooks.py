"""Hooks of pytest that a conftest.py takes over with `from hooks import *`: the marks `root` and
`long`, how many long cases of a test are drawn, and the end of a test that hangs. Agglab's own
tests use them too."""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

# Every p4runtime release to date (1.6.0) holds generated code that protobuf's C code refuses.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")

import need
import pytest
from hypothesis import settings

__all__ = [
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_pycollect_makeitem",
    "pytest_report_header",
    "pytest_timeout_cancel_timer",
    "pytest_timeout_set_timer",
]
# No test fails for the time it takes: the machine may be slow, or busy.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

CASES, CASES_WITH_ROOT = 12, 4
"""How many long cases of one test `make test-long` runs at most, and of one that needs root, unless
the test is marked `at_most(number)` or `every`. Which, TEST_SEED decides: other seeds draw others.
pytest without `-m "not undrawn"` runs all of them."""
SEED = os.environ.get("TEST_SEED", "1")
GRACE_S = 30
STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts a job in the background with Ctrl-C ignored. Tests send themselves Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[STDERR] = os.dup(2)  # as it is before tests' output is captured
    gc.disable()


def pytest_collection_finish() -> None:
    """Ten thousand tests are a million objects that stay. The garbage collector need not look at
    them again and again: that took a quarter of the time of collecting and running tests."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000)


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """A test beyond its time limit (pyproject.toml) fails by pytest-timeout's signal, unless C code
    keeps Python from handling it: then the stack, which names the test, and the end of all."""
    stderr = item.config.stash[STDERR]
    faulthandler.dump_traceback_later(settings.timeout + GRACE_S, exit=True, file=stderr)


def pytest_timeout_cancel_timer(item: pytest.Item) -> None:
    faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(hookwrapper=True)
def pytest_pycollect_makeitem() -> Iterator[None]:
    """Takes the mark `long(but=IDS)` from these cases of a test, and the mark `long(only=IDS)` from
    all its other cases."""
    made: Any = yield
    cases = made.get_result()
    if isinstance(cases, list) and cases:
        try:
            choose_long(cases)
        except pytest.Collector.CollectError as error:
            made.force_exception(error)


def choose_long(cases: list[Any]) -> None:
    """Raises pytest.Collector.CollectError if a mark names an id that no case has."""
    for mark in [mark for mark in cases[0].own_markers if mark.name == "long" and mark.kwargs]:
        ((word, ids),) = mark.kwargs.items()
        by_id = {case.callspec.id: case for case in cases if hasattr(case, "callspec")}
        unknown = sorted({*ids} - {*by_id})
        if unknown or word not in ("but", "only"):
            raise pytest.Collector.CollectError(
                f"{cases[0].nodeid}: long({word}=...) names no case of this test: {unknown}"
            )
        for case_id, case in by_id.items():
            if (case_id in ids) == (word == "but"):
                case.own_markers.remove(mark)


def pytest_report_header() -> str:
    return f"long cases: those that TEST_SEED={SEED} draws are not marked undrawn"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_undrawn(items)
    marked = [item for item in items if item.get_closest_marker("root")]
    skip = need.mark(need.ROOT, need.NAMESPACES) if marked else None
    for item in marked:
        item.add_marker(skip)


def mark_undrawn(items: Sequence[pytest.Item]) -> None:
    """Marks the long cases that the seed does not draw `undrawn`: a question that is asked in many
    ways has a budget."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("every"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for test, long in cases.items():
        number = min(budget(long[0]), len(long))
        drawn = random.Random(f"{SEED} {test}").sample(long, number)
        for item in long:
            if item not in drawn:
                item.add_marker("undrawn")


def budget(case: pytest.Item) -> int:
    """How many long cases of this case's test are drawn at most."""
    mark = case.get_closest_marker("at_most")
    if mark:
        return int(mark.args[0])
    return CASES_WITH_ROOT if case.get_closest_marker("root") else CASES
