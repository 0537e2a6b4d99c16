"""Fixtures of tests that move packets through the switch."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from switch_lab import FIXTURES, Lab


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A switch's namespace and three hosts'."""
    lab = Lab()
    yield lab
    lab.close()


@pytest.fixture(scope="session")
def stub_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("stub") / "stub.so"
    source = str(FIXTURES / "io/stub_pipeline.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(target), source], check=True)
    return target
