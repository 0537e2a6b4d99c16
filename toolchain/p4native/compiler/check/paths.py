"""Describes places in variables, and what is known about such places on the path to a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from p4native.compiler import ast, types

_SCALAR = (
    types.Bits,
    types.Boolean,
    types.Enum,
    types.SerializableEnum,
    types.Error,
    types.NewType,
)


class Place(NamedTuple):
    """A variable or parameter, or a field in it. fields: the names that lead to the field, empty
    for the whole variable."""

    declaration: ast.Declaration
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.declaration.name, *self.fields))

    def inside(self, outer: Place) -> bool:
        """Whether this place is `outer` or a part of it."""
        depth = len(outer.fields)
        return self.declaration is outer.declaration and self.fields[:depth] == outer.fields


Places = frozenset[Place]
NO_PLACES: Places = frozenset()


@dataclass(frozen=True, slots=True)
class Path:
    """What is known at one point of the control flow.

    unset: variables that may have no value. invalid: headers that are certainly invalid. doubtful:
    headers that may be invalid. ended: whether control cannot reach this point.
    """

    unset: Places = NO_PLACES
    invalid: Places = NO_PLACES
    doubtful: Places = NO_PLACES
    ended: bool = False

    def end(self) -> Path:
        return replace(self, ended=True)

    def known_invalid(self, place: Place) -> Path:
        unset = frozenset(p for p in self.unset if not p.inside(place))
        return Path(unset, self.invalid | {place}, self.doubtful - {place}, self.ended)

    def given(self, place: Place) -> Path:
        """Returns the state after a value was assigned to `place`. Headers in the place then count
        as possibly valid."""
        if not self.unset and not self.invalid and not self.doubtful:
            return self
        return self._only(lambda p: not p.inside(place))

    def maybe_valid(self, place: Place) -> Path:
        return Path(self.unset, self.invalid - {place}, self.doubtful - {place}, self.ended)

    def without(self, declarations: set[ast.Node]) -> Path:
        return self._only(lambda p: p.declaration not in declarations)

    def _only(self, wanted: Callable[[Place], bool]) -> Path:
        return Path(
            frozenset(filter(wanted, self.unset)),
            frozenset(filter(wanted, self.invalid)),
            frozenset(filter(wanted, self.doubtful)),
            self.ended,
        )


def merge(paths: list[Path]) -> Path:
    open_paths = [p for p in paths if not p.ended]
    if not open_paths:
        return Path(ended=True)
    invalid = frozenset.intersection(*(p.invalid for p in open_paths))
    somewhere = frozenset.union(*(p.invalid | p.doubtful for p in open_paths))
    return Path(frozenset.union(*(p.unset for p in open_paths)), invalid, somewhere - invalid)


def leaves(place: Place, type_: types.Type | None) -> Iterator[tuple[Place, types.Type]]:
    """Yields the scalars and headers in a type. Does not look inside stacks, unions and headers."""
    if isinstance(type_, (*_SCALAR, types.Header)):
        yield place, type_
    elif isinstance(type_, types.Struct):
        for field in type_.fields:
            inner = Place(place.declaration, (*place.fields, field.name))
            yield from leaves(inner, field.type)
