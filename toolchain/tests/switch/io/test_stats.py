"""The statistics' socket on its own."""

from __future__ import annotations

import errno
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from p4native.switch.io.stats_socket import StatsSocket


def ask(path: Path) -> Any:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        with connection.makefile("rb") as lines:
            return json.loads(lines.read())


def test_it_goes_on_when_there_was_no_descriptor_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept, failures = socket.socket.accept, [errno.EMFILE, errno.ENFILE]

    def failing(listener: socket.socket) -> Any:
        if failures:
            number = failures.pop()
            raise OSError(number, os.strerror(number))
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", failing)
    served = StatsSocket(tmp_path / "stats", lambda: {"packets": 3})
    assert ask(tmp_path / "stats") == {"packets": 3}
    served.close()
    assert not failures and not (tmp_path / "stats").exists()


def test_a_path_that_something_has_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        StatsSocket(tmp_path / "file", dict)
    served = StatsSocket(tmp_path / "stats", dict)
    with pytest.raises(FileExistsError):
        StatsSocket(tmp_path / "stats", dict)
    assert ask(tmp_path / "stats") == {}
    served.close()
