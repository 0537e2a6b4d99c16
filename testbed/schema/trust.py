"""Records which keys of a scenario were read correctly, so that their values are what the author
meant."""

from __future__ import annotations

from collections.abc import Iterable


class Trust:
    """The keys of a scenario that were not found wrong while reading.

    A key that could not be read has its default. The author did not choose that value, so checks
    must not use it.
    """

    def __init__(self, doubted: Iterable[str] = ()) -> None:
        self._doubted = frozenset(doubted)

    def __call__(self, *paths: str) -> bool:
        """Returns whether none of these keys, and no section around one of them, was found
        wrong."""
        return not any(
            path == wrong or _within(path, wrong) for path in paths for wrong in self._doubted
        )

    def whole(self, section: str) -> bool:
        """Returns whether nothing in the section, or around it, was found wrong."""
        return self(section) and not any(_within(wrong, section) for wrong in self._doubted)


EVERYTHING = Trust()


def _within(path: str, section: str) -> bool:
    return not section or path.startswith((f"{section}.", f"{section}["))
