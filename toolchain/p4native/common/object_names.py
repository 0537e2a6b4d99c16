"""Resolves names of a P4 program's objects. A name is either full, as in P4Info, or the last parts
of a full name.

`members` and `sums.members` both name the table `MyIngress.sums.members`, as long as no other
object of that kind ends in the same parts. A full name always names the object that has it, even if
other names end in it.
"""

from __future__ import annotations

from collections.abc import Iterable


class UnresolvedName(ValueError):
    """Raised for a name that no object has, or that several objects may have."""


def is_called(full_name: str, name: str) -> bool:
    """Returns whether `name` is the full name or consists of the last parts of it."""
    return full_name == name or full_name.endswith(f".{name}")


def matching(known: Iterable[str], name: str) -> list[str]:
    """Returns the full names that a name may stand for. If the name is itself one of them, it
    stands only for itself."""
    found = [each for each in known if is_called(each, name)]
    return [name] if name in found else found


def full_name(known: Iterable[str], name: str, kind: str) -> str:
    """Returns the one full name that a name stands for. kind: what the error message calls the
    object. Raises UnresolvedName if there is no such name, or more than one."""
    known = list(known)
    found = matching(known, name)
    if len(found) != 1:
        problem = "is ambiguous" if found else "does not exist"
        raise UnresolvedName(f"{kind} {name} {problem}; the program has {', '.join(known)}")
    return found[0]
