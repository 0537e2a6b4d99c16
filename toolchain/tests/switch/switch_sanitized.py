"""A program built with sanitizers (address, undefined behaviour), driven over a pipe."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from p4native.switch import Match, Program
from p4native.switch.build import build_program
from p4native.switch.encoding import encode_action, encode_match
from p4native.switch.translate import translate

HARNESS = Path(__file__).with_name("harness.c")


class Sanitized:
    """Commands are gathered and run by `finish`; each method returns the position of its answer."""

    def __init__(self, json_text: str) -> None:
        self.program = Program.parse(json_text)
        self.path = build_program(translate(self.program) + HARNESS.read_text())
        self.commands = b""
        self.readers: list[object] = []

    def process(self, port: int, frame: bytes, now: int = 0) -> int:
        self.commands += b"F" + struct.pack("=HQI", port, now, len(frame)) + frame
        return self.answer(self.read_frames)

    def table_add(
        self,
        table: str,
        match: Sequence[Match],
        action: str,
        args: Sequence[int] = (),
        priority: int = 0,
    ) -> int:
        found = self.program.tables[table]
        chosen = found.action(action)
        assert chosen
        key, mask = encode_match(found, match)
        data = encode_action(chosen, args)
        head = struct.pack("=IiII", found.index, priority, chosen.index, len(key))
        self.commands += b"A" + head + key + mask + struct.pack("=I", len(data)) + data
        return self.answer(self.read_struct("=iQ"))

    def table_delete(self, table: str, handle: int) -> int:
        self.commands += b"X" + struct.pack("=IQ", self.program.tables[table].index, handle)
        return self.answer(self.read_struct("=i"))

    def table_set_default(self, table: str, action: str, args: Sequence[int] = ()) -> int:
        found = self.program.tables[table]
        chosen = found.action(action)
        assert chosen
        data = encode_action(chosen, args)
        self.commands += b"D" + struct.pack("=III", found.index, chosen.index, len(data)) + data
        return self.answer(self.read_struct("=i"))

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> int:
        return self.replicas(b"G", group, replicas)

    def set_clone_session(self, session: int, replicas: Sequence[tuple[int, int]]) -> int:
        return self.replicas(b"C", session, replicas)

    def replicas(self, command: bytes, number: int, replicas: Sequence[tuple[int, int]]) -> int:
        pairs = b"".join(struct.pack("=HH", *pair) for pair in replicas)
        self.commands += command + struct.pack("=II", number, len(replicas)) + pairs
        return self.answer(self.read_struct("=i"))

    def register_read(self, name: str, index: int) -> int:
        register = self.program.registers[name]
        self.commands += b"R" + struct.pack("=III", register.index, index, register.bytes)
        return self.answer(lambda: int.from_bytes(self.take(register.bytes), "big"))

    def answer(self, reader: object) -> int:
        self.readers.append(reader)
        return len(self.readers) - 1

    def read_struct(self, layout: str) -> object:
        return lambda: struct.unpack(layout, self.take(struct.calcsize(layout)))

    def take(self, count: int) -> bytes:
        data = self.output[self.at : self.at + count]
        assert len(data) == count
        self.at += count
        return data

    def read_frames(self) -> list[tuple[int, bytes]]:
        copies = []
        while self.take(1) == b"\1":
            port, length = struct.unpack("=HI", self.take(6))
            copies.append((port, self.take(length)))
        return copies

    def finish(self) -> list[object]:
        """Run all commands; fails with the sanitizer's report if it has one."""
        done = subprocess.run([self.path], input=self.commands, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-4000:]
        self.output, self.at = done.stdout, 0
        answers = [reader() for reader in self.readers]  # type: ignore[operator]
        assert self.at == len(self.output)
        self.commands, self.readers = b"", []
        return answers
