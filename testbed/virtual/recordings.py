"""Records what a switch in virtual time receives, sends and says, with the times of the virtual
clock, in files of the same names as on real links."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from p4native.switch import Detail

NANOSECOND_PCAP = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
NS_PER_S = 1_000_000_000
DETAILS = {"debug": Detail.LOG, "trace": Detail.TRACE}
"""What a switch's program says at each level of `switch.log`; at other levels it says nothing."""


Observer = Callable[[str, int, int, bytes, Sequence[tuple[int, bytes]]], None]
"""A function that is called with each frame that a switch has processed: the switch, the time in
ns, the port and the frame, and the (port, frame) of each frame that was sent because of it."""


@dataclass(frozen=True)
class Wanted:
    """What is to be recorded. pcaps: the folder of captures, or None. logs: the folder of logs.
    level: the value of `switch.log`. observer: is told every frame; None for nobody."""

    pcaps: Path | None = None
    logs: Path | None = None
    level: str = "off"
    observer: Observer | None = None

    @property
    def detail(self) -> Detail:
        return DETAILS.get(self.level, Detail.NOTHING)

    @property
    def anything(self) -> bool:
        is_observed = self.pcaps is not None or self.observer is not None
        return is_observed or self.detail is not Detail.NOTHING


NOTHING = Wanted()


class SwitchRecording:
    """The files of one switch. Ports that the switch does not have are left out."""

    def __init__(self, wanted: Wanted, switch: str, ports: Iterable[int]) -> None:
        self._captures: dict[tuple[int, str], BinaryIO] = {}
        self._log: TextIO | None = None
        self._switch, self._observer = switch, wanted.observer
        if wanted.pcaps is not None:
            for port in ports:
                for way in ("in", "out"):
                    path = wanted.pcaps / f"{switch}-eth{port}_{way}.pcap"
                    file = self._captures[port, way] = path.open("wb")
                    file.write(NANOSECOND_PCAP)
        if wanted.detail is not Detail.NOTHING and wanted.logs is not None:
            self._log = (wanted.logs / f"switch-{switch}.log").open("w")

    def processed(
        self, now_ns: int, port: int, frame: bytes, sent: Sequence[tuple[int, bytes]]
    ) -> None:
        """Records a frame that the switch has processed, and those that it sent because of it."""
        if self._observer is not None:
            self._observer(self._switch, now_ns, port, frame, sent)
        self._capture(now_ns, port, "in", frame)
        for out, copy in sent:
            self._capture(now_ns, out, "out", copy)

    def _capture(self, now_ns: int, port: int, way: str, frame: bytes) -> None:
        file = self._captures.get((port, way))
        if file is not None:
            size = len(frame)
            file.write(struct.pack("<IIII", now_ns // NS_PER_S, now_ns % NS_PER_S, size, size))
            file.write(frame)

    def said(self, now_ns: int, lines: Iterable[str]) -> None:
        """Writes what the program has said to the log."""
        if self._log is not None:
            self._log.writelines(f"[{now_ns / NS_PER_S:.9f}] {line}\n" for line in lines)

    def flush(self) -> None:
        """Writes all that has been recorded to the files."""
        for file in self._captures.values():
            file.flush()
        if self._log is not None:
            self._log.flush()

    def close(self) -> None:
        """Closes all files."""
        for file in self._captures.values():
            file.close()
        if self._log is not None:
            self._log.close()
