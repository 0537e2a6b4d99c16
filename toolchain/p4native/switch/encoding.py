"""Encodes matches and arguments as the bytes that the functions of pipeline.h take. Checks them
against the program first."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.switch.errors import PipelineError
from p4native.switch.matches import Exact, Lpm, Match, Range, Ternary
from p4native.switch.model import Action, Key, Table, ValueSet


def encode_match(table: Table, match: Sequence[Match]) -> tuple[bytes, bytes]:
    """Returns (key, mask) of an entry. The mask of a range is its upper end."""
    if len(match) != len(table.keys):
        raise PipelineError(
            f"table '{table.name}': a key has {len(table.keys)} fields, not {len(match)}"
        )
    parts = [encode_field(table, k, m) for k, m in zip(table.keys, match, strict=True)]
    return b"".join(p[0] for p in parts), b"".join(p[1] for p in parts)


def encode_field(table: Table, key: Key, match: Match) -> tuple[bytes, bytes]:
    return encode_number(f"table '{table.name}'", key.name, key.kind, key.bits, match)


def encode_number(where: str, name: str, kind: str, bits: int, match: Match) -> tuple[bytes, bytes]:
    """Returns (value, mask) of a match, as bytes. The match may be of another kind than the key if
    it has the same meaning as a match of the key's kind."""
    full, size = (1 << bits) - 1, (bits + 7) // 8
    value, mask = plain(name, kind, bits, match)
    for number in (value, mask):
        if not 0 <= number <= full:
            raise PipelineError(f"{where}: '{name}' has {bits} bits; {number} does not fit")
    if kind == "range" and value > mask:
        raise PipelineError(f"{where}: '{name}': the range starts at {value}, after its end {mask}")
    return value.to_bytes(size, "big"), mask.to_bytes(size, "big")


def plain(name: str, kind: str, bits: int, match: Match) -> tuple[int, int]:
    wanted = {"exact": Exact, "valid": Exact, "lpm": Lpm, "ternary": Ternary, "range": Range}
    full = (1 << bits) - 1
    if isinstance(match, Exact):
        return match.value, match.value if kind == "range" else full
    if isinstance(match, Lpm) and kind in ("lpm", "ternary"):
        if not 0 <= match.prefix_len <= bits:
            raise PipelineError(f"'{name}': a prefix has 0 to {bits} bits")
        return match.value, full - (full >> match.prefix_len)
    if isinstance(match, Ternary) and kind == "ternary":
        return match.value, match.mask
    if isinstance(match, Range) and kind == "range":
        return match.low, match.high
    raise PipelineError(f"'{name}' is matched by {wanted[kind].__name__}")


def encode_value_set(value_set: ValueSet, match: Sequence[Match]) -> bytes:
    """Returns a member of a value set as bytes: its key, followed by its mask."""
    if len(match) != len(value_set.bits):
        raise PipelineError(
            f"value set '{value_set.name}': a member has {len(value_set.bits)} fields,"
            f" not {len(match)}"
        )
    parts = [
        encode_number(f"value set '{value_set.name}'", f"field {i}", "ternary", bits, match[i])
        for i, bits in enumerate(value_set.bits)
    ]
    return b"".join(p[0] for p in parts) + b"".join(p[1] for p in parts)


def decode_match(table: Table, key: bytes, mask: bytes) -> tuple[Match, ...]:
    """Returns the match that `encode_match` has encoded as this key and mask."""
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
    """Returns an action's arguments as bytes."""
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
