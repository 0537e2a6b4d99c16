"""Prints a packet next to the expected one, with the bytes and fields that differ."""

from __future__ import annotations

from typing import Any

from p4native.stf.frames import Expect
from p4native.stf.names import Binder


def spaced(nibbles: str) -> str:
    return " ".join(nibbles[i : i + 2] for i in range(0, len(nibbles), 2))


def side_by_side(expect: Expect, frame: bytes) -> list[str]:
    """Returns lines of eight bytes each, the expected ones on the left, with `^^` under bytes that
    differ."""
    want, got = expect.nibbles or "", frame.hex()
    length = max(len(want), len(got) if expect.exact else 0)
    lines = [f"  {'':6}{'expected':26}actual"]
    for at in range(0, length, 16):
        left, right = want[at : at + 16], got[at : at + 16]
        marks = [
            "^^" if not _same(want[i : i + 2], got[i : i + 2], expect.exact) else "  "
            for i in range(at, min(at + 16, length), 2)
        ]
        lines.append(f"  {at // 2:04x}  {spaced(left):26}{spaced(right)}")
        if any(m.strip() for m in marks):
            lines.append(f"  {'':32}{' '.join(marks).rstrip()}")
    if len(got) < len(want) or (expect.exact and len(got) != len(want)):
        lines.append(f"  expected {len(want) // 2} bytes, got {len(got) // 2}")
    return lines


def _same(want: str, got: str, exact: bool) -> bool:
    if len(want) > len(got) or (exact and len(want) != len(got)):
        return False
    return all(w in ("*", g) for w, g in zip(want, got, strict=False))


def differing_fields(binder: Binder, expect: Expect, frame: bytes) -> list[str]:
    """Returns the header fields that differ, as the program's own parser reads the packet that
    came."""
    lines, at = [], 0
    for name, bits in dissect(binder, frame):
        want, got = (bits_of(text, at, bits) for text in (expect.nibbles or "", frame.hex()))
        if len(want) == len(got) == bits and not _same(want, got, False):
            lines.append(f"    {name}: expected {_show(want)}, got {_show(got)}")
        at += bits
    return ["  fields, as the program's parser reads what came:", *lines] if lines else []


def bits_of(nibbles: str, at: int, count: int) -> str:
    """Returns bits of hexadecimal digits, in which `*` stands for any digit, as 0, 1 and `*`. They
    are fewer if the packet is too short."""
    cells = "".join(
        "****" if n == "*" else f"{int(n, 16):04b}"
        for n in nibbles[at // 4 : (at + count + 3) // 4]
    )
    return cells[at % 4 : at % 4 + count]


def _show(bits: str) -> str:
    return f"0b{bits}" if "*" in bits else f"{int(bits, 2):#0{(len(bits) + 3) // 4 + 2}x}"


def dissect(binder: Binder, frame: bytes) -> list[tuple[str, int]]:
    """Returns (field, bits) in the order on the wire. Ends where the path through the program's
    parser can no longer be followed easily."""
    parser = binder.program["parsers"][0]
    states = {s["name"]: s for s in parser["parse_states"]}
    state: str | None = parser["init_state"]
    fields: list[tuple[str, int]] = []
    values: dict[tuple[str, str], str] = {}
    counts: dict[str, int] = {}
    bits = f"{int.from_bytes(b'1' + frame, 'big'):b}"[6:]
    at = 0
    for _ in range(64):
        if state is None or state not in states:
            break
        for op in states[state]["parser_ops"]:
            if op["op"] == "set":
                target, source = op["parameters"]
                _set(binder, target, source, values)
                continue
            if op["op"] != "extract" or op["parameters"][0]["type"] not in ("regular", "stack"):
                return fields
            header = op["parameters"][0]["value"]
            if op["parameters"][0]["type"] == "stack":
                counts[header] = counts.get(header, -1) + 1
                header = f"{header}[{counts[header]}]"
            for name, width, *_ in binder.fields[header]:
                if width == "*" or at + width > len(bits):
                    return fields
                fields.append((f"{header}.{name}", width))
                values[header, name] = bits[at : at + width]
                at += width
        state = _next_state(states[state], values, bits[at:])
    return fields


def _set(binder: Binder, target: Any, source: Any, values: dict[tuple[str, str], str]) -> None:
    """Assigns a constant or the value of a field to a field. The value is unknown afterwards if
    the source is anything else."""
    header, field = target["value"]
    width = {name: width for name, width, *_ in binder.fields[header]}[field]
    if source["type"] == "hexstr":
        values[header, field] = f"{int(source['value'], 16) % (1 << width):0{width}b}"
    elif source["type"] == "field" and tuple(source["value"]) in values:
        values[header, field] = values[tuple(source["value"])].rjust(width, "0")[-width:]
    else:
        values.pop((header, field), None)


def _next_state(
    state: dict[str, Any], values: dict[tuple[str, str], str], ahead: str
) -> str | None:
    key = ""
    for part in state["transition_key"]:
        if part["type"] == "field" and tuple(part["value"]) in values:
            cell = values[tuple(part["value"])]
        elif part["type"] == "lookahead":
            cell = ahead[part["value"][0] : sum(part["value"])]
        else:
            return None
        key += "0" * (-len(cell) % 8) + cell  # BMv2 pads every key part to whole bytes
    number = int(key or "0", 2)
    for case in state["transitions"]:
        if case.get("type", "default" if case["value"] == "default" else "hexstr") == "default":
            return case["next_state"] and str(case["next_state"])
        mask = int(case["mask"], 16) if case.get("mask") else -1
        if number & mask == int(case["value"], 16) & mask:
            return str(case["next_state"])
    return None
