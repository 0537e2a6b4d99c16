"""Tests are sorted by what the machine needs; a skipped one names what is missing."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from pathlib import Path
from typing import Any

# Every p4runtime release to date (1.6.0) holds generated code that protobuf's C code refuses.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")

import pytest
from hypothesis import settings

# No test fails for the time it takes: the machine may be slow, or busy.
settings.register_profile("agglab", deadline=None)
settings.load_profile("agglab")

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import needs  # noqa: E402

GRACE_S = 30
STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts a job in the background with Ctrl-C ignored. Tests send themselves Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[STDERR] = os.dup(2)  # as it is before tests' output is captured


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """A test beyond its time limit (pyproject.toml) fails by pytest-timeout's signal, unless C code
    keeps Python from handling it: then the stack, which names the test, and the end of all."""
    stderr = item.config.stash[STDERR]
    faulthandler.dump_traceback_later(settings.timeout + GRACE_S, exit=True, file=stderr)


def pytest_timeout_cancel_timer(item: pytest.Item) -> None:
    faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("root")]
    skip = needs.mark("root", "network namespaces") if marked else None
    for item in marked:
        item.add_marker(skip)
