"""Runs simple_switch_CLI as a function that takes one command and returns its answer. It raises an
error if a command is refused.

BMv2 has no stable library for its Thrift interface, but its command line is the same everywhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import time

from p4native.bmv2.errors import ControlError

PROGRAM = "simple_switch_CLI"
PROMPT = b"RuntimeCmd: "
ANSWER_S = 60.0
REFUSALS = re.compile(
    r"^(?:(?:Error|Invalid|Could not|Traceback|Wrong|Unknown)\b|\*\*\* ).*$", re.MULTILINE
)


class ThriftCli:
    """One running simple_switch_CLI, connected to a switch on loopback.

    It is started in the calling thread's network namespace. A context manager. Raises ControlError
    if the switch does not answer.
    """

    def __init__(self, port: int) -> None:
        self._process = subprocess.Popen(
            [PROGRAM, "--thrift-port", str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            self._answer("connect")
        except ControlError:
            self.close()
            raise

    def __enter__(self) -> ThriftCli:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def command(self, line: str) -> str:
        """Returns the answer to one command. Raises ControlError with the switch's message if the
        command is refused."""
        assert "\n" not in line and self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ControlError(f"{PROGRAM} ended before it could execute `{line}`") from None
        answer = self._answer(line)
        refused = refusal(answer)
        if refused:
            raise ControlError(f"`{line}`: {refused}")
        return answer

    def close(self) -> None:
        """Ends the program, even if it is executing a command."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):  # what was still to be flushed
                stream.close()

    def _answer(self, line: str) -> str:
        """Returns the text that the program prints before the next prompt."""
        assert self._process.stdout is not None
        descriptor, text = self._process.stdout.fileno(), b""
        deadline = time.monotonic() + ANSWER_S
        while not text.endswith(PROMPT):
            ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise ControlError(f"`{line}`: {PROGRAM} did not answer within {ANSWER_S:g} s")
            new = os.read(descriptor, 1 << 16)
            if not new:
                said = text.decode(errors="replace").strip().splitlines() or ["nothing"]
                raise ControlError(f"`{line}`: {PROGRAM} ended with the message: {said[-1]}")
            text += new
        return text[: -len(PROMPT)].decode(errors="replace")


def refusal(answer: str) -> str | None:
    """Returns the line of an answer that says that the command was not executed; None if it was
    executed."""
    found = REFUSALS.search(answer)
    return found[0].strip() if found else None


def handle(answer: str) -> int:
    """Returns the handle of the entry or node that a command created, from its answer."""
    return int(_found(r"\bwith handle (\d+)", answer)[1])


def counter(answer: str) -> tuple[int, int]:
    """Returns (packets, bytes) from the answer to counter_read. Older versions print them in the
    opposite order."""
    packets = _found(r"\b(\d+) packets|packets=(\d+)", answer)
    size = _found(r"\b(\d+) bytes|bytes=(\d+)", answer)
    return int(packets[1] or packets[2]), int(size[1] or size[2])


def register(answer: str) -> int:
    """Returns the value from the answer to register_read with an index."""
    return int(_found(r"\]=\s*(\d+)", answer)[1])


def _found(pattern: str, answer: str) -> re.Match[str]:
    found = re.search(pattern, answer)
    if found is None:
        raise ControlError(f"{PROGRAM} sent an answer of an unknown form: {answer.strip()!r}")
    return found
