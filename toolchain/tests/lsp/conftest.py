"""The language server's tests share helper modules that lie beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lsp_session import Session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path.resolve() / "prog.p4")
