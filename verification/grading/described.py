"""Describes packets in words: headers with their fields, as the program's parser reads them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from agglab.verification.stf import Binder
from agglab.verification.stf.show import dissect, spaced

LOWER = re.compile(r"(eth|ethernet|ip|ipv4|udp)(_h|_t|_header)?", re.IGNORECASE)
"""The names of headers that every packet of a protocol has alike."""
BYTES_SHOWN = 16


def described(binder: Binder, frame: bytes, whole: bool = False) -> str:
    """Returns a packet in words. whole: whether headers below the protocol's own are shown, too."""
    return described_nibbles(binder, frame.hex(), whole)


def described_nibbles(binder: Binder, nibbles: str, whole: bool = False) -> str:
    """Returns the same for a packet in hexadecimal digits, with `*` for any digit. What the parser
    does not read, or cannot be followed, is shown as bytes."""
    padded = nibbles + "0" * (len(nibbles) % 2)
    bits = "".join("****" if n == "*" else f"{int(n, 16):04b}" for n in nibbles)
    headers: dict[str, list[str]] = {}
    at = 0
    for name, width in dissect(binder, bytes.fromhex(padded.replace("*", "0"))):
        header, _, item = name.rpartition(".")
        headers.setdefault(header, []).append(f"{item} {_value(bits[at : at + width])}")
        at += width
    upper = {header: items for header, items in headers.items() if not LOWER.fullmatch(header)}
    shown = upper if upper and not whole else headers
    texts = [f"{header}({', '.join(items)})" for header, items in shown.items()]
    return " ".join([*texts, _rest(nibbles[(at + 3) // 4 :])]).strip() or "an empty packet"


def _rest(nibbles: str) -> str:
    """Returns the first bytes of what the parser does not read, and how many there are."""
    size = len(nibbles) // 2
    more = f" ... ({size} bytes)" if size > BYTES_SHOWN else ""
    return spaced(nibbles[: 2 * BYTES_SHOWN]) + more


def _value(bits: str) -> str:
    if "*" in bits:
        return "any" if set(bits) == {"*"} else f"0b{bits}"
    number = int(bits, 2)
    return str(number) if len(bits) <= 32 else f"{number:#0{len(bits) // 4 + 2}x}"


def path_on_a_shell(path: Path) -> str:
    """Returns a path as a word of a command: relative if it is below the working directory."""
    whole = Path(os.path.abspath(path))
    below = whole.is_relative_to(Path.cwd())
    return shlex.quote(str(whole.relative_to(Path.cwd()) if below else whole))
