"""What the workers of a round have to agree on besides the shape of their arrays: what the caller
makes of the sum, and of which tensors. This module imports nothing of `hosts`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

OPERATIONS = ("SUM", "AVG")
TENSORS_BITS = 16


@dataclass(frozen=True)
class Agreement:
    """The facts that a caller wants workers to compare before a round.

    operation: one of OPERATIONS, as an index. tensors: a digest of TENSORS_BITS bits of the tensors
    whose values the array holds, 0 if there are none.
    """

    operation: int = 0
    tensors: int = 0

    @property
    def number(self) -> int:
        """A number below 2^20 that differs if the facts do. It is 0 for the sum of an array."""
        return self.operation << TENSORS_BITS | self.tensors


PLAIN = Agreement()


@runtime_checkable
class Agreeing(Protocol):
    """An endpoint that compares an Agreement with other workers when a round begins."""

    agreement: Agreement


def operation_name(operation: int) -> str:
    """Returns the name of an operation, which may come from another worker."""
    return OPERATIONS[operation] if operation < len(OPERATIONS) else f"operation {operation}"


def disagreement(
    round_of_job: str,
    shape: str,
    own: Agreement,
    digest_of: Callable[[Agreement], int],
    other_digest: int,
    others: str = "another",
    members: str = "all of a job",
) -> str:
    """Returns the message for a round that not all began alike. round_of_job: the round, in words.
    shape: what this worker reduces, and with which settings. digest_of: returns the digest of this
    shape with an Agreement. others, members: who may differ, and who must not."""
    also, another = _difference(own, digest_of, other_digest)
    return (
        f"{round_of_job}: this worker reduces {shape}{also} (digest {digest_of(own):08x}), "
        f"{others} {another} (digest {other_digest:08x}); {members} have to reduce alike"
    )


def _difference(
    own: Agreement, digest_of: Callable[[Agreement], int], other_digest: int
) -> tuple[str, str]:
    """Returns words to add to this worker's shape, and words for what another worker reduces, as
    far as its digest shows it."""
    for operation, name in enumerate(OPERATIONS):
        if digest_of(replace(own, operation=operation)) == other_digest:
            return f", operation {operation_name(own.operation)}", f"the same with operation {name}"
    return "", "something else"
