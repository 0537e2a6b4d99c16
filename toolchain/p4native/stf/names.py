"""Resolves the names and values of a script in a program's BMv2 JSON. A name may be the end of a
full name. The width of a field determines the form of a value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from p4native.common.object_names import matching
from p4native.stf.frames import StfError
from p4native.stf.script import Key


@dataclass(frozen=True)
class Match:
    """The value of one key of an entry. operand: the prefix length for lpm, the mask for ternary,
    the end for range."""

    kind: str
    value: int
    operand: int = 0


class Binder:
    """Resolves a script's names and values in one program's BMv2 JSON."""

    def __init__(self, program: dict[str, Any]):
        self.program = program
        types = {t["name"]: t["fields"] for t in program["header_types"]}
        self.fields = {h["name"]: types[h["header_type"]] for h in program["headers"]}
        self.tables = {t["name"]: t for pipe in program["pipelines"] for t in pipe["tables"]}
        self.profiles = [
            p["name"] for pipe in program["pipelines"] for p in pipe.get("action_profiles", ())
        ]
        self.actions = {a["id"]: a for a in program["actions"]}
        self.arrays = {
            kind: [a["name"] for a in program.get(f"{kind}_arrays", ())]
            for kind in ("counter", "register", "meter")
        }

    def table(self, name: str, line: int) -> dict[str, Any]:
        return self.tables[_by_suffix(name, self.tables, "table", line)]

    def profile(self, name: str, line: int) -> str:
        return _by_suffix(name, self.profiles, "action profile", line)

    def profile_table(self, profile: str) -> dict[str, Any]:
        """Returns a table that uses the profile. Its actions are those of the profile's members."""
        return next(t for t in self.tables.values() if t.get("action_profile") == profile)

    def metered_table(self, meter: str) -> str | None:
        """Returns the table to whose entries a direct meter belongs, or None for an array of
        meters."""
        found = next(m for m in self.program["meter_arrays"] if m["name"] == meter)
        return str(found["binding"]) if found.get("is_direct") else None

    def array(self, kind: str, name: str, line: int) -> str:
        return _by_suffix(name, self.arrays[kind], kind, line)

    def size(self, kind: str, name: str) -> int:
        found = next(a for a in self.program[f"{kind}_arrays"] if a["name"] == name)
        return int(found["size"])

    def action(
        self, table: dict[str, Any], name: str, args: Iterable[tuple[str, int]], line: int
    ) -> tuple[str, list[int]]:
        full = _by_suffix(name, table["actions"], f"action in table {table['name']}", line)
        action = self.actions[table["action_ids"][table["actions"].index(full)]]
        given = dict(args)
        wanted = [(p["name"], p["bitwidth"]) for p in action["runtime_data"]]
        if sorted(given) != sorted(n for n, _ in wanted):
            names = ", ".join(n for n, _ in wanted) or "no arguments"
            raise StfError(f"action {full} takes {names}", line)
        for arg, bits in wanted:
            if given[arg] >> bits:
                raise StfError(f"{arg}: {given[arg]:#x} does not fit in {bits} bits", line)
        return full, [given[n] for n, _ in wanted]

    def matches(self, table: dict[str, Any], keys: Iterable[Key], line: int) -> list[Match]:
        """Returns the matches for a table's keys, in the table's order. A key that the script
        leaves out matches anything or, if its match is exact, 0."""
        columns = {k.get("name") or ".".join(k["target"]): k for k in table["key"]}
        written: dict[str, Key] = {}
        for key in keys:
            written[_key_name(key.name, columns, table["name"], line)] = key
        return [
            _bind_key(written.get(name), column["match_type"], self.width(column["target"]), line)
            for name, column in columns.items()
        ]

    def width(self, target: list[str]) -> int:
        header, name = target
        if name == "$valid$":
            return 1
        return int(next(f[1] for f in self.fields[header] if f[0] == name))


def _by_suffix(name: str, known: Iterable[str], what: str, line: int) -> str:
    """Returns the name itself if it is a full name. Otherwise returns a known name that ends in
    `.name` or, without one, a known name that ends in `name`."""
    known = list(known)
    found = matching(known, name) or [each for each in known if each.endswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise StfError(f"{what} `{name}` could be {' or '.join(sorted(found))}", line)
    raise StfError(f"no {what} is called `{name}`; known: {', '.join(known) or 'none'}", line)


def _key_name(written: str, columns: Iterable[str], table: str, line: int) -> str:
    """Returns the name of a key. `extra$0.h` stands for `extra[0].h`. Validity is written
    `h.$valid$`, `h.valid` or just `h`."""
    name = re.sub(r"\$(\d+)", r"[\1]", written)
    spellings = [name, name + "$", name + ".$valid$", re.sub(r"\bvalid$", "$valid$", name)]
    for spelling in spellings:
        if spelling in columns:
            return spelling
    for spelling in spellings:
        found = [c for c in columns if c.endswith("." + spelling)]
        if found:
            return found[0]
    raise StfError(f"table {table} has no key `{written}`; keys: {', '.join(columns)}", line)


def _bind_key(key: Key | None, kind: str, bits: int, line: int) -> Match:
    full = (1 << bits) - 1
    if key is None:
        return Match(kind, 0, full if kind == "range" else 0)
    value, mask = _digits(key.value, bits)
    operand = _digits(key.operand, bits)[0] if key.op else 0
    if value > full or operand > max(full, bits):
        raise StfError(f"{key.name}: the value does not fit in {bits} bits", line)
    if key.op == "/" and operand > bits:
        raise StfError(f"{key.name}: a prefix of {operand} bits is longer than the key", line)
    allowed = {"lpm": ("", "/"), "ternary": ("", "&&&"), "range": ("", "..")}.get(kind, ("",))
    if key.op not in allowed or ("*" in key.value and kind not in ("lpm", "ternary")):
        raise StfError(
            f"{key.name}: this value does not fit a key that is matched by `{kind}`", line
        )
    if kind == "lpm":
        return Match(kind, value, operand if key.op else _prefix_length(mask, bits, key, line))
    if kind == "ternary":
        return Match(kind, value & full, operand if key.op else mask)
    if kind == "range":
        return Match(kind, value, operand if key.op else value)
    return Match(kind, value, full)


def _digits(text: str, bits: int) -> tuple[int, int]:
    """Returns value and mask. As in p4c's runner, `0x25**` compares only the digits that are
    written, so that 0x25 compares 8 bits of a ternary key of 16 bits. A decimal number compares all
    bits."""
    base = {"0x": 16, "0b": 2, "0o": 8}.get(text[:2].lower())
    if base is None:
        return int(text), (1 << bits) - 1
    digits = text[2:].replace("_", "")
    top = "0f" if base == 16 else "01" if base == 2 else "07"
    mask = int("".join(top[c != "*"] for c in digits), base)
    return int(digits.replace("*", "0"), base), mask & (1 << bits) - 1


def _prefix_length(mask: int, bits: int, key: Key, line: int) -> int:
    if "*" not in key.value:
        return bits
    length = bits - (~mask & (1 << bits) - 1).bit_length()
    wild = bits - length
    if mask >> wild != (1 << length) - 1 or mask & ((1 << wild) - 1):
        raise StfError(f"{key.name}: the `*` of a prefix must stand at its end", line)
    return length
