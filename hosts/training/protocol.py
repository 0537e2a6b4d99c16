"""The protocol between a training script and the agent of its host. Each message is a JSON object
in one packet of a Unix socket of type SEQPACKET. Tensors are in shared memory, whose descriptor
comes with Welcome.

    agent   Welcome          once, with the descriptor; or Refused, then the connection is closed
    script  Reduce           any number of times; at most one under way for each slot
    agent   Done or Failed   one for each Reduce, in the order of the Reduces
    script  Report, Counts   at any time; they are not answered
    script  Goodbye          when the script needs no more reductions

Both sides check every field. A ProtocolError says in one line what is wrong. This module imports
only agreement.py of `hosts`.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

from agglab.hosts.agreement import OPERATIONS, TENSORS_BITS

VERSION = 2
MESSAGE_BYTES_MAX = 65536
ITEM_BYTES = {"float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}
"""The types of values that a service may reduce, with the bytes of a value."""
LARGEST_ITEM_BYTES = 4
SLOTS_MAX = 64
NAME_CHARACTERS_MAX = 64
NAMES_MAX = 256


class ProtocolError(ValueError):
    """Raised for a message that the protocol does not allow. The text is one line."""


@dataclass(frozen=True)
class Welcome:
    """The agent's first message, with the facts that the script needs.

    rank, workers: this worker's rank in the job, and the job's number of workers. elements: the
    largest number of values in one reduction. slots: how many reductions may be under way at the
    same time. dtypes: the types of ITEM_BYTES that the system takes. address: the IPv4 address of
    this host, for connections to other hosts.
    """

    kind: ClassVar[str] = "welcome"
    version: int
    rank: int
    workers: int
    elements: int
    slots: int
    dtypes: list[str]
    address: str

    def check(self) -> None:
        _require(self.version == VERSION, f"version is {self.version}; this is {VERSION}")
        _require(self.workers >= 1, "workers must be at least 1")
        _require(0 <= self.rank < self.workers, "rank must be from 0 to workers - 1")
        _require(self.elements >= 1, "elements must be at least 1")
        _require(1 <= self.slots <= SLOTS_MAX, f"slots must be 1 to {SLOTS_MAX}")
        known = all(isinstance(dtype, str) and dtype in ITEM_BYTES for dtype in self.dtypes)
        _require(
            known and "float32" in self.dtypes, "dtypes must be known ones, float32 among them"
        )

    @property
    def slot_bytes(self) -> int:
        """The number of bytes of shared memory for each slot."""
        return self.elements * LARGEST_ITEM_BYTES


@dataclass(frozen=True)
class Refused:
    """The agent's message that it refuses to serve this process. error: the reason."""

    kind: ClassVar[str] = "refused"
    error: str

    def check(self) -> None:
        _require(bool(self.error), "error must say something")


@dataclass(frozen=True)
class Reduce:
    """A request to sum `elements` values of type `dtype` over all ranks. The values are in a slot
    of the shared memory, and the sums replace them there. operation, tensors: what all ranks have
    to agree on besides (hosts/agreement.py)."""

    kind: ClassVar[str] = "reduce"
    number: int
    slot: int
    elements: int
    dtype: str
    operation: int = 0
    tensors: int = 0

    def check(self) -> None:
        _require(self.number >= 0, "number must be at least 0")
        operations = len(OPERATIONS)
        _require(0 <= self.operation < operations, f"operation must be below {operations}")
        _require(0 <= self.tensors < 1 << TENSORS_BITS, f"tensors must have {TENSORS_BITS} bits")
        _require(0 <= self.slot < SLOTS_MAX, f"slot must be below {SLOTS_MAX}")
        _require(self.elements >= 1, "elements must be at least 1")
        _require(self.dtype in ITEM_BYTES, f"dtype must be one of {', '.join(ITEM_BYTES)}")


@dataclass(frozen=True)
class Done:
    """The answer to a Reduce whose sums have replaced the values."""

    kind: ClassVar[str] = "done"
    number: int

    def check(self) -> None:
        _require(self.number >= 0, "number must be at least 0")


@dataclass(frozen=True)
class Failed:
    """The answer to a Reduce that has no result. fatal: whether all later reductions will fail
    too."""

    kind: ClassVar[str] = "failed"
    number: int
    error: str
    fatal: bool

    def check(self) -> None:
        _require(self.number >= 0, "number must be at least 0")
        _require(bool(self.error), "error must say something")


@dataclass(frozen=True)
class Report:
    """The script's message about its progress: finite numbers or short texts, by name."""

    kind: ClassVar[str] = "report"
    values: dict[str, Any]

    def check(self) -> None:
        _check_names(self.values)
        for name, value in self.values.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            _require(number or isinstance(value, str), f"{name} must be a number or a text")


@dataclass(frozen=True)
class Counts:
    """The increase of the script's counts since its last Counts message, by name. The receiver adds
    up all increases."""

    kind: ClassVar[str] = "counts"
    values: dict[str, Any]

    def check(self) -> None:
        _check_names(self.values)
        for name, value in self.values.items():
            _require(type(value) is int and 0 <= value < 2**63, f"{name} must be a count")


@dataclass(frozen=True)
class Goodbye:
    """The script's message that its process group was closed, or that its interpreter ends."""

    kind: ClassVar[str] = "goodbye"

    def check(self) -> None:
        """Does nothing, because a Goodbye has no fields."""


Message = Welcome | Refused | Reduce | Done | Failed | Report | Counts | Goodbye
FROM_AGENT: tuple[type, ...] = (Welcome, Refused, Done, Failed)
FROM_SCRIPT: tuple[type, ...] = (Reduce, Report, Counts, Goodbye)
FIELD_TYPES: dict[str, type] = {
    "int": int,
    "str": str,
    "bool": bool,
    "list[str]": list,
    "dict[str, Any]": dict,
}
M = TypeVar("M", bound=Message)


def pack(message: Message) -> bytes:
    """Returns the packet of a message. Raises ProtocolError for a message that its receiver would
    refuse."""
    message.check()
    try:
        packet = json.dumps({"kind": message.kind, **asdict(message)}, allow_nan=False).encode()
    except ValueError:
        raise ProtocolError(f"{message.kind}: numbers must be finite") from None
    if len(packet) > MESSAGE_BYTES_MAX:
        raise ProtocolError(f"{message.kind}: {len(packet)} bytes; at most {MESSAGE_BYTES_MAX}")
    return packet


def unpack(packet: bytes, allowed: tuple[type, ...]) -> Any:
    """Returns the message that a packet contains. The message must be of one of the types
    `allowed`; otherwise ProtocolError is raised, as for any malformed packet."""
    if len(packet) > MESSAGE_BYTES_MAX:
        raise ProtocolError(f"a message of {len(packet)} bytes; at most {MESSAGE_BYTES_MAX}")
    try:
        given = json.loads(packet, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ProtocolError("a message that is not JSON") from None
    kinds = {each.kind: each for each in allowed}  # type: ignore[attr-defined]
    kind = given.pop("kind", None) if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise ProtocolError(f"a message of kind {kind!r:.40}; expected {', '.join(kinds)}")
    return _read(kinds[kind], given)


def _read(made: type[M], given: dict[str, Any]) -> M:
    fields = made.__dataclass_fields__
    names = [name for name, field in fields.items() if "ClassVar" not in str(field.type)]
    if set(given) != set(names):
        raise ProtocolError(f"{made.kind}: its fields must be {', '.join(names) or 'none'}")
    for name in names:
        if type(given[name]) is not FIELD_TYPES[str(fields[name].type)]:
            raise ProtocolError(f"{made.kind}: {name} must be of type {fields[name].type}")
    message = made(**given)
    message.check()
    return message


def _check_names(values: dict[str, Any]) -> None:
    _require(len(values) <= NAMES_MAX, f"{len(values)} values; at most {NAMES_MAX}")
    for name, value in values.items():
        fits = isinstance(name, str) and 0 < len(name) <= NAME_CHARACTERS_MAX and name.isprintable()
        _require(fits, f"{name!r:.80} is not a name of 1 to {NAME_CHARACTERS_MAX} characters")
        finite = not isinstance(value, float) or math.isfinite(value)
        _require(finite, f"{name} is {value}; it must be finite")


def _refuse_constant(word: str) -> None:
    raise ValueError(word)


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ProtocolError(text)
