"""Which keys of a scenario hold what their author meant."""

from __future__ import annotations

from collections.abc import Iterable


class Trust:
    """All keys but those that were found wrong while reading.

    A key that was read wrongly has its default, from which nothing follows.
    """

    def __init__(self, doubted: Iterable[str] = ()) -> None:
        self._doubted = frozenset(doubted)

    def __call__(self, *paths: str) -> bool:
        """Whether neither these keys nor a section around one of them is in doubt."""
        return not any(
            path == wrong or _within(path, wrong) for path in paths for wrong in self._doubted
        )

    def whole(self, section: str) -> bool:
        """Whether nothing in the section is in doubt either."""
        return self(section) and not any(_within(wrong, section) for wrong in self._doubted)


EVERYTHING = Trust()


def _within(path: str, section: str) -> bool:
    return not section or path.startswith((f"{section}.", f"{section}["))
