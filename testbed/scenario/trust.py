"""Records which keys of a scenario hold what their author meant."""

from __future__ import annotations

from collections.abc import Iterable


class Trust:
    """The keys of a scenario that were not found wrong while reading.

    A key that could not be read has its default, from which nothing must be concluded.
    """

    def __init__(self, doubted: Iterable[str] = ()) -> None:
        self._doubted = frozenset(doubted)

    def __call__(self, *paths: str) -> bool:
        """Returns whether no problem was found with any of these keys, or with a section around one
        of them."""
        return not any(
            path == wrong or _within(path, wrong) for path in paths for wrong in self._doubted
        )

    def whole(self, section: str) -> bool:
        """Returns whether no problem was found in the whole section."""
        return self(section) and not any(_within(wrong, section) for wrong in self._doubted)


EVERYTHING = Trust()


def _within(path: str, section: str) -> bool:
    return not section or path.startswith((f"{section}.", f"{section}["))
