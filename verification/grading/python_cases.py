"""Judges a case whose check calls a student's Python. The check runs here; the student's code runs
in a process of its own (jail.py), and all that comes from there is answers to calls."""

from __future__ import annotations

import importlib.util
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from agglab.verification.grading.jail import Jail
from agglab.verification.grading.lab import COMPILES, Case
from agglab.verification.grading.result import Judged
from agglab.verification.grading.student import decoded, encoded, receive, send
from p4native.common.printable import one_line

ANSWER_S = 10.0
"""How long a call may take, in seconds."""


class StudentError(Exception):
    """Raised in a check if the student's code raised an exception. kind: the name of its class."""

    def __init__(self, kind: str, text: str, line: int) -> None:
        where = f", line {line}" if line else ""
        super().__init__(f"your code raised {kind}{where}: {text}")
        self.kind = kind


class Lacking(AttributeError):
    """Raised if the student's object has no attribute of this name, so that `hasattr` works."""


class Gone(Exception):
    """Raised if the student's process does not answer. The message is a sentence."""


class Channel:
    """The requests to one process of a student."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.settimeout(ANSWER_S)

    def answer(self) -> Any:
        """Returns the value of the next answer. Raises StudentError or Gone."""
        try:
            kind, content = receive(self._socket)
            if kind == "returned":
                return decoded(content, lambda number, name: Remote(self, int(number), str(name)))
            name, text, line = content
            raised = StudentError(one_line(str(name), 60), one_line(str(text)), int(line))
        except TimeoutError:
            raise Gone(f"Your code had not returned after {ANSWER_S:.0f} s.") from None
        except (EOFError, OSError):
            raise Gone("Your code ended the program, or used too much memory or time.") from None
        except (
            *(ValueError, TypeError, KeyError, OverflowError, AttributeError),
            *(RecursionError, MemoryError),
        ) as error:
            raise Gone(f"Your code gave an answer that is no value: {error}.") from None
        raise raised

    def ask(self, verb: str, number: int, *given: Any) -> Any:
        """Sends a request and returns the value of its answer."""
        request = [verb, number, *(_request(each) for each in given)]
        try:
            send(self._socket, request)
        except OSError:
            raise Gone("Your code ended the program.") from None
        return self.answer()


class Remote:
    """An object of the student's, as a check sees it: attributes, calls, items and lengths. It is
    no plain value; comparing it with one is a failure, because the student's class cannot be
    trusted to compare."""

    def __init__(self, channel: Channel, number: int, name: str) -> None:
        self.__dict__.update(_channel=channel, _number=number, _name=name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._channel.ask("get", self._number, name)
        except StudentError as error:
            if error.kind != "AttributeError":
                raise
            raise Lacking(f"{self!r} has no {name}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._channel.ask("set", self._number, name, value)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._channel.ask("call", self._number, list(given), named)

    def __getitem__(self, key: Any) -> Any:
        return self._channel.ask("item", self._number, key)

    def __len__(self) -> int:
        return int(self._channel.ask("len", self._number))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._channel.ask("list", self._number))

    def __repr__(self) -> str:
        name = self.__dict__["_name"]
        return "your file" if name == "module" else f"an object of class {name}"

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError(f"your code returned {self!r} where a plain value is needed")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse
    __contains__ = __int__ = __float__ = __index__ = _refuse
    __hash__ = object.__hash__


def _request(value: Any) -> Any:
    """Returns a value of a check as plain JSON. A Remote is sent as the object that it stands
    for."""
    if isinstance(value, Remote):
        return {"object": [value.__dict__["_number"], ""]}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [_request(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[_request(key), _request(each)] for key, each in value.items()]}
    return encoded(value, None)


def loads(copy: Path, jail: Jail, folder: Path) -> Judged:
    """Judges whether the student's file can be loaded."""
    try:
        with jail.started(copy, folder) as connection:
            Channel(connection).answer()
    except (StudentError, Gone) as error:
        return Judged(COMPILES, False, (str(error),))
    return Judged(COMPILES, True)


def judge(case: Case, copy: Path, jail: Jail, folder: Path) -> Judged:
    """Judges the student's file with a case's check."""
    check = _check(case.path)
    try:
        with jail.started(copy, folder) as connection:
            channel = Channel(connection)
            check(channel.answer())
    except AssertionError as error:
        return Judged(case.id, False, _lines(str(error) or _asserted(error.__traceback__)))
    except (StudentError, Gone, Lacking) as error:
        return Judged(case.id, False, (str(error),))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        text = f"your code returned something else than it has to: {error}"
        return Judged(case.id, False, _lines(text))
    return Judged(case.id, True)


def _check(path: Path) -> Any:
    """Returns the function `check` of a case's module. The module may import what lies beside
    it."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    described = importlib.util.spec_from_file_location(f"check_{path.stem}", path)
    assert described is not None and described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module.check


def _lines(text: str) -> tuple[str, ...]:
    return tuple(one_line(line) for line in text.splitlines()[:12])


def _asserted(trace: TracebackType | None) -> str:
    """Returns the line of the check that failed, for an assertion without a message."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    if trace is None:
        return ""
    lines = Path(trace.tb_frame.f_code.co_filename).read_text().splitlines()
    return lines[trace.tb_lineno - 1].strip()
