"""Base classes of objects that are used in `with` statements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import TypeVar

C = TypeVar("C", bound="Closing")
B = TypeVar("B", bound="BuiltOnEntry")


class Closing(ABC):
    """An object whose `close` is called at the end of a `with` statement."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class BuiltOnEntry(ABC):
    """An object that is built when a `with` statement is entered, completely or not at all, and
    taken down at the end of the statement. A subclass defines `_build`, which puts on `_stack` what
    takes the object down."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    @abstractmethod
    def _build(self) -> None: ...

    def __enter__(self: B) -> B:
        with self._stack:
            self._build()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
