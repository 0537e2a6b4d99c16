"""Wireshark dissectors: Lua that runs the parser of a compiled program on captured frames."""

from __future__ import annotations

from p4native.switch.wireshark.dissector import dissector

__all__ = ["dissector"]
