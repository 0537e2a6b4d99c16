"""Declares the functions that header accesses and wide values need from expressions that fit a
machine word. expressions.py implements them."""

from __future__ import annotations

from typing import Protocol

from p4native.switch.expression import Bool, Data, HeaderExpression, RegisterCell
from p4native.switch.translate.layout import Layout
from p4native.switch.translate.ranges import Range, Ranges
from p4native.switch.translate.writer import Writer


class HeaderReader(Protocol):
    """A translator of header expressions to C."""

    def read(self, header: HeaderExpression) -> str: ...


class ScalarExpressions(Protocol):
    """A translator of conditions, and of data of at most 64 bits, to C."""

    def u64(self, data: Data) -> str: ...

    def boolean(self, data: Bool) -> str: ...


class NarrowExpressions(ScalarExpressions, Protocol):
    """The functions for narrow expressions that wide values need."""

    out: Writer
    layout: Layout
    ranges: Ranges

    @property
    def header_access(self) -> HeaderReader: ...

    def exact(self, data: Data) -> Range: ...

    def argument_offset(self, index: int) -> int: ...

    def register_index(self, data: RegisterCell) -> tuple[str, bool]: ...

    def cell(self, data: RegisterCell, index: str) -> str: ...
