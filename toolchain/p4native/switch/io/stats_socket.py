"""Serves statistics to other processes: a Unix socket sends one line of JSON on each connection."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

RETRY_S = 0.1


def taken(path: str | Path) -> bool:
    """Whether a file, or a Unix socket on which a process listens, is at `path`. A socket on which
    nobody listens is removed."""
    if not os.path.lexists(path):
        return False
    if not Path(path).is_socket():
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            os.unlink(path)
            return False
        except OSError:
            pass
    return True


class StatsSocket:
    """A socket that serves the result of `read()` to this user from a thread until `close`. Raises
    OSError if the path is taken."""

    def __init__(self, path: Path, read: Callable[[], dict[str, Any]]) -> None:
        self._path = path
        self._read = read
        if taken(path):
            raise FileExistsError(f"{path} is in use by another process")
        self._listener = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o077)
        try:
            self._listener.bind(str(path))
        except OSError:
            self._listener.close()
            raise
        finally:
            os.umask(mask)
        self._listener.listen(8)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                # Closed; or this process has no descriptor left, and will when others close theirs.
                if self._closing.wait(RETRY_S):
                    return
                continue
            with connection, contextlib.suppress(OSError):
                connection.settimeout(1)
                connection.sendall(json.dumps(self._read()).encode() + b"\n")

    def close(self) -> None:
        """Stops serving and removes the socket's file."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        # Without the privileges that it was made with it stays (cleanup.py).
        with contextlib.suppress(PermissionError):
            self._path.unlink(missing_ok=True)
