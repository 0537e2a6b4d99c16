"""What an all-reduce can end with other than the sum. Imports nothing."""

from __future__ import annotations


class AllReduceError(RuntimeError):
    """The round has no result; the message says in one line what is missing or wrong, and where."""


class RoundTimeout(AllReduceError):
    """No awaited result came for as long as the worker was told to wait."""


class NotFinite(AllReduceError):
    """Inf or NaN in some worker's input, or a sum too large for float32."""
