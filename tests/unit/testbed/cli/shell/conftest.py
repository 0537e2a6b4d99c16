"""A prompt in virtual time, without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from shell_asked import Asked, opened
from shell_terminal import SCENARIO


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Callable[..., Asked]]:
    """Opens a prompt on a scenario, given as text."""
    with ExitStack() as stack:

        def open_(scenario: str = SCENARIO) -> Asked:
            path = tmp_path / "prompt.yaml"
            path.write_text(scenario)
            return stack.enter_context(opened(path))

        yield open_
