"""Matches and arguments as the bytes of pipeline.h, checked against the program."""

from __future__ import annotations

from collections.abc import Sequence

from switch.errors import PipelineError
from switch.matches import Exact, Lpm, Match, Range, Ternary
from switch.model import Action, Key, Table


def encode_match(table: Table, match: Sequence[Match]) -> tuple[bytes, bytes]:
    """(key, mask) of an entry: the mask of a range is its upper end."""
    if len(match) != len(table.keys):
        raise PipelineError(
            f"table '{table.name}': a key has {len(table.keys)} fields, not {len(match)}"
        )
    parts = [encode_field(table, k, m) for k, m in zip(table.keys, match, strict=True)]
    return b"".join(p[0] for p in parts), b"".join(p[1] for p in parts)


def encode_field(table: Table, key: Key, match: Match) -> tuple[bytes, bytes]:
    """A wider kind of match is accepted where it says the same as the key's own."""
    full = (1 << key.bits) - 1
    value, mask = plain(key, match, full)
    for number in (value, mask):
        if not 0 <= number <= full:
            raise PipelineError(
                f"table '{table.name}': '{key.name}' has {key.bits} bits, {number} does not fit"
            )
    if key.kind == "range" and value > mask:
        raise PipelineError(f"table '{table.name}': '{key.name}': {value} is after {mask}")
    return value.to_bytes(key.bytes, "big"), mask.to_bytes(key.bytes, "big")


def plain(key: Key, match: Match, full: int) -> tuple[int, int]:
    wanted = {"exact": Exact, "valid": Exact, "lpm": Lpm, "ternary": Ternary, "range": Range}
    if isinstance(match, Exact):
        return match.value, match.value if key.kind == "range" else full
    if isinstance(match, Lpm) and key.kind in ("lpm", "ternary"):
        if not 0 <= match.prefix_len <= key.bits:
            raise PipelineError(f"'{key.name}': a prefix has 0 to {key.bits} bits")
        return match.value, full - (full >> match.prefix_len)
    if isinstance(match, Ternary) and key.kind == "ternary":
        return match.value, match.mask
    if isinstance(match, Range) and key.kind == "range":
        return match.low, match.high
    raise PipelineError(f"'{key.name}' is matched by {wanted[key.kind].__name__}")


def decode_match(table: Table, key: bytes, mask: bytes) -> tuple[Match, ...]:
    """The reverse of encode_match."""
    found: list[Match] = []
    at = 0
    for field in table.keys:
        value = int.from_bytes(key[at : at + field.bytes], "big")
        field_mask = int.from_bytes(mask[at : at + field.bytes], "big")
        at += field.bytes
        if field.kind == "lpm":
            found.append(Lpm(value, field_mask.bit_count()))
        elif field.kind == "ternary":
            found.append(Ternary(value, field_mask))
        elif field.kind == "range":
            found.append(Range(value, field_mask))
        else:
            found.append(Exact(value))
    return tuple(found)


def encode_action(action: Action, args: Sequence[int]) -> bytes:
    """An action's arguments."""
    if len(args) != len(action.params):
        raise PipelineError(
            f"action '{action.name}' has {len(action.params)} arguments, not {len(args)}"
        )
    for param, value in zip(action.params, args, strict=True):
        if not 0 <= value < 1 << param.bits:
            raise PipelineError(
                f"action '{action.name}': '{param.name}' has {param.bits} bits,"
                f" {value} does not fit"
            )
    pairs = zip(action.params, args, strict=True)
    return b"".join(value.to_bytes(param.bytes, "big") for param, value in pairs)
