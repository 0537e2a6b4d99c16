"""The class Digests, which hands out the digests that a running program has made."""

from __future__ import annotations

import ctypes
import struct

from p4native.switch.library import Instance

DIGEST_ROOM = 1 << 18
"""The largest number of bytes that can wait to be taken; DIGEST_ROOM of state.h."""
LIST = struct.Struct("=H")


class Digests:
    """The digests of one running program that wait to be taken. `pipeline.digests` is an
    instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def take(self) -> list[tuple[str, tuple[int, ...]]]:
        """Returns the (name, fields) of the digests made since the last call, in order. While 256
        KiB wait to be taken, further digests are dropped and counted under the reason `digest`."""
        if not self._instance.program.learn_lists:
            return []
        buffer = ctypes.create_string_buffer(DIGEST_ROOM)
        size = self._instance.call("pl_take_digests", buffer, DIGEST_ROOM)
        data = buffer.raw[:size]
        found, at = [], 0
        while at < size:
            learned = self._instance.program.learn_lists[LIST.unpack_from(data, at)[0]]
            at += LIST.size
            values = []
            for _, field in learned.fields:
                values.append(int.from_bytes(data[at : at + field.bytes], "big"))
                at += field.bytes
            found.append((learned.name, tuple(values)))
        return found
