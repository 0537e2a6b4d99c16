"""Reads the captures of one port, for tests."""

from __future__ import annotations

import struct
from pathlib import Path


def frames_of(capture: Path) -> list[bytes]:
    """The frames of a pcap file."""
    data, at, frames = capture.read_bytes(), 24, []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames
