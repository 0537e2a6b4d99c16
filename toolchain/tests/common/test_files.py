"""Files that a user names: regular ones of a sane size, or one line that says why not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from p4native.common.files import read_bytes
from p4native.switch import PipelineError
from p4native.switch.program import Program


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def device(path: Path) -> Path:
    return Path("/dev/zero")


def huge(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(1 << 40)
    return path


REFUSED = [
    (pipe, "is not a regular file"),
    (device, "is not a regular file"),
    (huge, "is larger than 256 MiB"),
]


@pytest.mark.parametrize(("make", "why"), REFUSED)
def test_anything_else_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], Path], why: str
) -> None:
    path = make(tmp_path / "x")
    with pytest.raises(OSError, match=why):
        read_bytes(path)
    with pytest.raises(PipelineError, match=f"{path}: cannot be read: {why}"):
        Program.read(path)


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    content = os.urandom(100_000)
    (tmp_path / "x").write_bytes(content)
    assert read_bytes(tmp_path / "x", 100_000) == content
    with pytest.raises(OSError, match="is larger"):
        read_bytes(tmp_path / "x", 99_999)
