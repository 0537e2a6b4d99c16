"""The part that all scapy layers of compiled P4 programs share: it follows the program's parser
from each layer to the next. scapy_layers.py puts this text into every module that it writes."""

from __future__ import annotations

from typing import Any

from scapy.packet import Packet, Raw

STEPS_MAX = 4096
OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
LAYERS: dict[str, type[Header]] = {}
"""The class of each header, stack or union's member, by the program's name for it."""
PROGRAM: dict[str, Any] = {}
"""`first`: the parser's first state. `states`: for each state its operations, keys (each with its
bits) and transitions."""


class Header(Packet):
    """A header of the program. `place` is the state that has taken it from the packet, and the
    number of the operation there; `values` has what the parser has written so far."""

    __slots__ = ("following", "place", "values")
    origin: str
    following: tuple[str, int]
    place: tuple[str, int]
    values: dict[Any, int | None]

    def pre_dissect(self, content: bytes) -> bytes:
        if isinstance(self.underlayer, Header):
            self.place, self.values = self.underlayer.following, {**self.underlayer.values}
        else:
            self.place, self.values = _first_place(type(self).origin), {}
        return content

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        name, self.following = _follow(self, *self.place, payload)
        return LAYERS.get(name, Raw)

    def variable_bytes(self) -> int:
        """The length of the header's field of variable length, in bytes."""
        state, number = self.place
        given = PROGRAM["states"][state]["ops"][number]["parameters"]
        bits = _value(given[1], self.underlayer, b"", self.values) if len(given) > 1 else 0
        return (bits or 0) // 8


def decode(frame: bytes) -> Packet:
    """Returns a frame as the layers that the program's parser takes from it, and the rest as
    Raw."""
    name, _ = _follow(None, PROGRAM["first"], -1, frame)
    return LAYERS.get(name, Raw)(frame)


def _follow(
    layer: Header | None, state: str | None, number: int, payload: bytes
) -> tuple[str, tuple[str, int]]:
    """Returns the name of the header that the parser takes next, and its place; the name is empty
    if it takes none, or does what cannot be followed. number: of the last operation that was
    done."""
    values = layer.values if layer else {}
    for _ in range(STEPS_MAX):
        if state is None or state not in PROGRAM["states"]:
            break
        described = PROGRAM["states"][state]
        for at, operation in enumerate(described["ops"]):
            if at <= number:
                continue
            if operation["op"] in ("extract", "extract_VL"):
                return _extracted(operation), (state, at)
            if not _done(operation, layer, payload, values):
                return "", ("", 0)
        state, number = _next(described, layer, payload, values), -1
    return "", ("", 0)


def _extracted(operation: dict[str, Any]) -> str:
    given = operation["parameters"][0]["value"]
    return ".".join(given) if isinstance(given, list) else str(given)


def _first_place(origin: str) -> tuple[str, int]:
    """Returns the first place at which the parser takes a header."""
    for state, described in PROGRAM["states"].items():
        for at, operation in enumerate(described["ops"]):
            if operation["op"].startswith("extract") and _extracted(operation) == origin:
                return state, at
    return "", 0


def _done(
    operation: dict[str, Any], layer: Header | None, payload: bytes, values: dict[Any, int | None]
) -> bool:
    """Does an operation that takes nothing from the packet. Returns whether it can be done."""
    if operation["op"] == "set":
        target, source = operation["parameters"]
        values[tuple(target["value"])] = _value(source, layer, payload, values)
    return operation["op"] in ("set", "verify")


def _next(
    described: dict[str, Any],
    layer: Header | None,
    payload: bytes,
    values: dict[Any, int | None],
) -> str | None:
    """Returns the state that a state leads to; None at the end, or if that depends on what is not
    in the packet."""
    found = [(_value(key, layer, payload, values), bits) for key, bits in described["keys"]]
    if any(value is None for value, _ in found):
        return None
    content = b"".join((value or 0).to_bytes((bits + 7) // 8, "big") for value, bits in found)
    key = int.from_bytes(content, "big")
    for wanted, mask, state in described["transitions"]:
        if wanted is None or (key ^ wanted) & mask == 0:
            return str(state) if state is not None else None
    return None


def _value(
    source: dict[str, Any], layer: Packet | None, payload: bytes, values: dict[Any, int | None]
) -> int | None:
    """Returns the value of an expression; None if it is not in the packet."""
    kind, given = source["type"], source["value"]
    if kind == "hexstr":
        return int(given, 16)
    if kind == "field":
        return values[tuple(given)] if tuple(given) in values else _field(layer, *given)
    if kind == "stack_field":
        return _field(layer, *given)
    if kind == "lookahead":
        offset, width = given
        rest = 8 * len(payload) - offset - width
        return None if rest < 0 else int.from_bytes(payload, "big") >> rest & (1 << width) - 1
    if kind == "expression" and "op" not in given:
        return _value(given, layer, payload, values)
    if kind == "expression" and given["op"] in OPERATIONS:
        left, right = (_value(given[side], layer, payload, values) for side in ("left", "right"))
        return None if left is None or right is None else OPERATIONS[given["op"]](left, right)
    return None


def _field(layer: Packet | None, header: str, field: str) -> int | None:
    """Returns a field of the topmost layer of a header. An element of a stack, such as `h[1]`, is
    found by its number."""
    origin, _, index = header.rstrip("]").partition("[")
    layers = []
    while isinstance(layer, Header):
        if type(layer).origin == origin:
            layers.append(layer)
        layer = layer.underlayer
    place = len(layers) - 1 - int(index) if index else 0
    if not 0 <= place < len(layers):
        return None
    return int(layers[place].getfieldval(field))
