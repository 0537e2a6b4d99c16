"""What the two servers are asked: groups of steps, each beginning with the program anew.

A step is (name, answer): names say what is asked, answers are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from controller import Controller
from p4.v1 import p4runtime_pb2 as pb

Step = tuple[str, Any]
Group = Callable[[Controller], Iterator[Step]]
GROUPS: dict[str, Group] = {}


def group(function: Group) -> Group:
    GROUPS[function.__name__] = function
    return function


def exact(id_: int, value: bytes) -> Any:
    return pb.FieldMatch(field_id=id_, exact=pb.FieldMatch.Exact(value=value))


def lpm(id_: int, value: bytes, length: int) -> Any:
    return pb.FieldMatch(field_id=id_, lpm=pb.FieldMatch.LPM(value=value, prefix_len=length))


def ternary(id_: int, value: bytes, mask: bytes) -> Any:
    return pb.FieldMatch(field_id=id_, ternary=pb.FieldMatch.Ternary(value=value, mask=mask))


def between(id_: int, low: bytes, high: bytes) -> Any:
    return pb.FieldMatch(field_id=id_, range=pb.FieldMatch.Range(low=low, high=high))


def optional(id_: int, value: bytes) -> Any:
    return pb.FieldMatch(field_id=id_, optional=pb.FieldMatch.Optional(value=value))


def packet(kind: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> bytes:
    values = (kind, 1), (a, 1), (b, 2), (c, 4), (d << 4 | e, 2)
    return b"".join(value.to_bytes(size, "big") for value, size in values)


def insert(entity: Any) -> tuple[str, Any]:
    return "INSERT", entity


def modify(entity: Any) -> tuple[str, Any]:
    return "MODIFY", entity


def delete(entity: Any) -> tuple[str, Any]:
    return "DELETE", entity


def tried(c: Controller, entity: Any, kind: str = "INSERT") -> Any:
    """What an INSERT is answered; what was inserted is deleted again, for the steps after."""
    answer = c.write((kind, entity))
    if answer == "OK":
        c.write(delete(entity))
    return answer
