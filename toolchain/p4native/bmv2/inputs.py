"""Writes the packets of a script to simple_switch's input files, each when it is due.

simple_switch (`--use-files`) holds the next packet of every file that has not ended. It processes
the one with the smallest time stamp, and then continues to read that file before it processes
another packet. Every port is therefore a FIFO into which its next packet is written ahead, except
the port whose packet was processed last. Writing the next packet there, or ending the file, lets
the switch process exactly one more packet.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from p4native.stf.frames import Packet

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
PCAP_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16


class Inputs:
    """The input files of all ports. folder: the folder for the files `portN_in.pcap`. ports: all
    ports of the switch. packets: all packets of the script, in order."""

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
        """Sends a packet, which must be the script's next one."""
        assert self._due.popleft() == (port, frame), "another packet than the script's next"
        self._read_on(self._held)
        self._held = port

    def _read_on(self, port: int) -> None:
        """Writes the port's next packet to its file, or ends the file if there is none."""
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
