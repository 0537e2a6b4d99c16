"""The editor's side of the language server's protocol, for tests and measurements."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from p4native.lsp import rpc

TIMEOUT_S = 60


class ServerEndedError(Exception):
    """The server ended, or did not answer within TIMEOUT_S."""


class Client:
    """A server in a process of its own. diagnostics: the messages shown last, by URI."""

    def __init__(self, arguments: Sequence[str] = (), cwd: str | None = None) -> None:
        command = [sys.executable, "-m", "p4native.lsp", *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd
        )
        self.diagnostics: dict[str, list[dict[str, Any]]] = {}
        self._messages: queue.Queue[Any] = queue.Queue()
        self._requests = 0
        threading.Thread(target=self._read_all, daemon=True).start()

    def _read_all(self) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                self._messages.put(rpc.read_message(self.process.stdout))
        except (EOFError, ValueError, rpc.MalformedError):
            self._messages.put(None)

    def write(self, data: bytes) -> None:
        """Sends bytes, which need not be a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def tell(self, method: str, params: Any) -> None:
        self.write(rpc.framed({"method": method, "params": params}))

    def ask(self, method: str, params: Any) -> Any:
        """Returns the answer to a request: a message with `result` or `error`."""
        self._requests += 1
        number = self._requests
        self.write(rpc.framed({"id": number, "method": method, "params": params}))
        return self.until(lambda message: message.get("id") == number)

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Returns the first message that `wanted` accepts. Keeps the diagnostics among the
        others."""
        while True:
            message = self._next(time.monotonic() + TIMEOUT_S)
            if wanted(message):
                return message

    def until_shown(self, uri: str, wanted: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Waits until the diagnostics of a file are such that `wanted` accepts them."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not wanted(self.diagnostics.get(uri, [])):
            self._next(deadline_s)

    def _next(self, deadline_s: float) -> dict[str, Any]:
        try:
            message = self._messages.get(timeout=max(0.0, deadline_s - time.monotonic()))
        except queue.Empty:
            raise ServerEndedError(f"no answer within {TIMEOUT_S} s") from None
        if message is None:
            raise ServerEndedError(f"the server ended with {self.process.wait()}")
        if message.get("method") == "textDocument/publishDiagnostics":
            given = message["params"]
            self.diagnostics[given["uri"]] = given["diagnostics"]
        return dict(message)

    def close(self) -> int:
        """Ends the server as an editor does, and returns its exit code."""
        try:
            self.ask("shutdown", None)
            self.tell("exit", None)
            return self.process.wait(TIMEOUT_S)
        finally:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    stream.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
