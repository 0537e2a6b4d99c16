"""Mininet 2.3.0 imports distutils, which Python 3.12 does not have any more."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

import pytest

from agglab.testbed.real import distutils_stand_in

MODULES = ("distutils", "distutils.version")


@pytest.fixture
def without_distutils(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on Python 3.12; what a test imports in its place is gone after it."""
    kept = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "distutils" else find(name)
    )
    yield
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


@pytest.mark.usefixtures("without_distutils")
def test_it_is_there_for_mininet_and_may_be_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distutils_stand_in.provide()
    version = sys.modules["distutils.version"]
    assert version.StrictVersion("2.9") == "2.9"
    monkeypatch.undo()  # the real find_spec refuses to say anything of a module without a spec
    distutils_stand_in.provide()
    assert sys.modules["distutils.version"] is version
