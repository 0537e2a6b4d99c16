"""The packets of a script into simple_switch's input files, each when it is due.

simple_switch (`--use-files`) holds the next packet of every file that has not ended, takes the one
with the smallest time stamp, and then reads that file on before it takes another. So every port is
a FIFO that has its next packet written ahead, except the port whose packet was taken last: what is
written there, or that it ends, lets the switch take exactly one packet more.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from agglab.verification.stf.script import Packet

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
PCAP_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16


class Inputs:
    """folder: where the files `portN_in.pcap` are made; ports: all of the switch; packets: those of
    the script, in order, and no others are sent."""

    def __init__(self, folder: Path, ports: Sequence[int], packets: Sequence[Packet]) -> None:
        self._due = deque((packet.port, packet.data) for packet in packets)
        self._records: dict[int, deque[bytes]] = {}
        for number, packet in enumerate(packets):  # as a time stamp: only its order counts
            head = struct.pack("<IIII", 0, number, len(packet.data), len(packet.data))
            self._records.setdefault(packet.port, deque()).append(head + packet.data)
        self._open = {p: _fifo(_input(folder, p)) for p in self._records}
        for port in ports:
            if port not in self._records:
                _input(folder, port).write_bytes(PCAP_HEADER)
        self._held = packets[0].port if packets else -1
        for port in self._records.keys() - {self._held}:
            self._read_on(port)

    def send(self, port: int, frame: bytes) -> None:
        """The script's next packet, and none beyond it."""
        assert self._due.popleft() == (port, frame), "another packet than the script's next"
        self._read_on(self._held)
        self._held = port

    def _read_on(self, port: int) -> None:
        """The port's next packet can be read, or that there is none."""
        if self._records[port]:
            os.write(self._open[port], self._records[port].popleft())
        else:
            os.close(self._open.pop(port))

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


def _input(folder: Path, port: int) -> Path:
    return folder / f"port{port}_in.pcap"


def _fifo(path: Path) -> int:
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR)  # read-write: neither side's open waits
    os.write(descriptor, PCAP_HEADER)
    return descriptor
