"""A file that a user names is written completely or not at all, and devices stay what they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from p4native.common.whole_files import whole_file


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    with whole_file(out) as path:
        path.write_text("new")
        assert out.read_text() == "old"
    assert out.read_text() == "new"
    assert list(tmp_path.iterdir()) == [out]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("old")
    with pytest.raises(ValueError, match="no"), whole_file(out) as path:
        path.write_text("half")
        raise ValueError("no")
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_a_pipe_or_device_is_never_replaced(tmp_path: Path) -> None:
    out = tmp_path / "pipe"
    os.mkfifo(out)
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(out) as path:
            path.write_text("content")
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(out.stat().st_mode)
    assert list(tmp_path.iterdir()) == [out]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, out = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    out.symlink_to(target)
    with whole_file(out) as path:
        path.write_text("new")
    assert out.is_symlink()
    assert target.read_text() == "new"
