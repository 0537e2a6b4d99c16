"""The program that the packet loop's tests run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """stub_pipeline.c compiled."""
    target = tmp_path_factory.mktemp("stub") / "stub.so"
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-o", str(target), str(HERE / "stub_pipeline.c")],
        check=True,
    )
    return target
