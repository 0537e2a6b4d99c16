"""Writes one loop for headers that are neighbours in a stack, instead of the same C for each of
them: a program may have thousands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from p4native.switch.storage import Header
from p4native.switch.translate.layout import Layout
from p4native.switch.translate.writer import Writer


def follows(header: Header, before: Header) -> bool:
    """Whether a header is the element of a stack that follows another one."""
    return (
        header.stack is not None
        and header.stack is before.stack
        and header.stack_index == before.stack_index + 1
    )


def runs(headers: Sequence[Header]) -> Iterator[tuple[Header, int]]:
    """Yields the first header and the length of each run of neighbours, in order."""
    start = 0
    for at in range(1, len(headers) + 1):
        if at == len(headers) or not follows(headers[at], headers[at - 1]):
            yield headers[start], at - start
            start = at


@contextmanager
def each(layout: Layout, out: Writer, first: Header, count: int) -> Iterator[str]:
    """Writes a loop over `count` neighbours around the code of the `with` block, if they are more
    than one. Yields the C lvalue of the header that the code is about."""
    if count == 1:
        yield f"k->{layout.member(first)}"
        return
    assert first.stack
    start = first.stack_index
    with out.block(f"for (unsigned int e = {start}; e < {start + count}; e++)"):
        yield f"k->{layout.stacks[first.stack]}[e]"
