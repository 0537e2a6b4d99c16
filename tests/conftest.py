"""Tests are sorted by what the machine needs; a skipped one names what is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Every p4runtime release to date (1.6.0) holds generated code that protobuf's C code refuses.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")

import pytest
from hypothesis import settings

# No test fails for the time it takes: the machine may be slow, or busy.
settings.register_profile("agglab", deadline=None)
settings.load_profile("agglab")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="needs root (network namespaces): run as root, or with sudo")
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(skip)
