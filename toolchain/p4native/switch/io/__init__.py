"""The packet loop: one C thread that moves frames between interfaces through a compiled program.

`PacketLoop` opens the interfaces when it is made, and forwards from `start()` to `close()`. It
accepts another program at any time. The loop itself is in loop.c; no Python code runs for a packet.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from p4native.common.contexts import Closing
from p4native.switch.io import native


class PacketLoopError(Exception):
    """Raised for an interface or file that the packet loop cannot use. The message is one line that
    includes the remedy."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.permission = code in (errno.EPERM, errno.EACCES)
        """Whether a missing privilege is the cause."""


class PipelineHandle(Protocol):
    """The part of a compiled program that the packet loop needs. `switch.Pipeline` provides it."""

    @property
    def handle(self) -> int:
        """The `struct pipeline *`, as an integer address."""
        ...

    def function_address(self, name: str) -> int:
        """Returns the address of a function of pipeline.h."""
        ...

    def drops(self) -> dict[str, int]:
        """Returns how many packets the program dropped, by reason."""
        ...


@dataclass(frozen=True)
class Loss:
    """A rule by which frames are dropped at one side of a port. Equal rules drop the same frames.

    The rule applies to the frames that come from the interface or, with `outgoing`, to those that
    go to it. These frames are counted from 0. Frame k is dropped if output k of splitmix64, started
    at `key`, is below `threshold`, which is between 0 and 2^64.
    """

    port: int
    outgoing: bool
    key: int
    threshold: int

    @property
    def name(self) -> str:
        """The name under which the statistics count the frames that this rule drops."""
        return "drop_out" if self.outgoing else "drop_in"


DEFAULT_RING_FRAMES = 0
"""The default, which stands for 2048 frames, or for as many as fit 8 MiB if that is less (long
frames)."""
DEFAULT_BATCH_FRAMES = 32
DEFAULT_COALESCE_US = 50
"""The default. With four ports at 100 Mbit/s and 1078-byte frames, it reduced the processor time
for each frame from 4.6 us to 2.8 us."""
MAX_PORT = 511
CONTROLLER = "(controller)"
"""The name of the CPU port's interface in the statistics."""


class PacketLoop(Closing):
    """Ports on real interfaces, and the thread that forwards between them.

    interfaces: port numbers (0..511) -> interface names. cpu_port: the number of an additional port
    whose other end is `controller`, a SOCK_SEQPACKET socket with one frame in each message.
    pcap_folder: the folder for `<iface>_in.pcap` and `<iface>_out.pcap`. losses: incoming losses
    drop frames before the program, captures and counters see them. Outgoing losses drop them after
    the program, but before they are captured and counted. Raises PacketLoopError.
    """

    def __init__(
        self,
        interfaces: Mapping[int, str],
        *,
        cpu_port: int | None = None,
        pcap_folder: str | Path | None = None,
        losses: Sequence[Loss] = (),
        ring_frames: int = DEFAULT_RING_FRAMES,
        batch: int = DEFAULT_BATCH_FRAMES,
        coalesce_us: int = DEFAULT_COALESCE_US,
    ) -> None:
        self._lib = native.library()
        self._loop = ctypes.c_void_p()
        self._names = dict(interfaces)
        self._losses = tuple(losses)
        # Held while a pipeline's counts are read, so that it is not closed meanwhile.
        self._swapping = threading.Lock()
        self._pipeline: PipelineHandle | None = None
        self._program: native.LoopProgram | None = None
        self.controller: socket.socket | None = None
        options = native.LoopOptions(ring_frames, batch, coalesce_us)
        _check(self._lib.loop_new(ctypes.byref(options), ctypes.byref(self._loop)), "packet loop")
        try:
            for port, interface in interfaces.items():
                self._add_interface(port, interface)
                if pcap_folder is not None:
                    self._add_pcap(port, interface, Path(pcap_folder))
            if cpu_port is not None:
                self._add_cpu_port(cpu_port)
            for loss in losses:
                self._add_loss(loss)
        except PacketLoopError:
            self.close()
            raise

    def _add_interface(self, port: int, interface: str) -> None:
        step = ctypes.c_char_p()
        result = self._lib.loop_add_interface(
            self._loop, port, interface.encode(), ctypes.byref(step)
        )
        self._check_step(result, port, step)

    def attach(self, port: int) -> None:
        """Moves a port to the interface that has its name now, after the one that it had was
        deleted. At any time, also without privileges. Raises PacketLoopError."""
        step = ctypes.c_char_p()
        result = self._lib.loop_attach(self._loop, port, ctypes.byref(step))
        self._check_step(result, port, step)

    def _check_step(self, result: int, port: int, step: ctypes.c_char_p) -> None:
        if result < 0:
            message = _explain(-result, port, self._names[port], (step.value or b"").decode())
            raise PacketLoopError(message, -result)

    def _add_pcap(self, port: int, interface: str, folder: Path) -> None:
        paths = [folder / f"{interface}_{way}.pcap" for way in ("in", "out")]
        result = self._lib.loop_add_pcap(self._loop, port, *(os.fsencode(path) for path in paths))
        _check(result, f"cannot write {paths[0]}")

    def _add_cpu_port(self, port: int) -> None:
        fd = self._lib.loop_add_cpu_port(self._loop, port)
        _check(fd, f"CPU port {port}")
        self.controller = socket.socket(fileno=fd)
        self._names[port] = CONTROLLER

    def _add_loss(self, loss: Loss) -> None:
        always = loss.threshold >> 64
        below = loss.threshold & (1 << 64) - 1
        result = self._lib.loop_add_drop(
            self._loop, loss.port, loss.outgoing, loss.key, below, always
        )
        _check(result, f"{loss.name} of port {loss.port}")

    def start(self) -> None:
        """Starts forwarding."""
        _check(self._lib.loop_start(self._loop), "cannot start the data-plane thread")

    def set_pipeline(self, pipeline: PipelineHandle | None) -> None:
        """Makes the loop forward by `pipeline`. When it returns, no packet is in the previous
        pipeline any more."""
        program = None
        if pipeline is not None:
            functions = (
                pipeline.function_address(f"pl_{n}")
                for n in ("lock", "unlock", "process", "know_sum")
            )
            program = native.LoopProgram(pipeline.handle, *functions)
        with self._swapping:
            pointer = None if program is None else ctypes.byref(program)
            self._lib.loop_set_program(self._loop, pointer)
            self._pipeline, self._program = pipeline, program

    def stats(self) -> dict[str, Any]:
        """Returns the counters since the start: those of each port and of the thread, and the
        frames that the program dropped, by reason."""
        ports = {str(port): self._port_stats(port) for port in self._names}
        loop = native.LoopStats()
        self._lib.loop_read_stats(self._loop, ctypes.byref(loop))
        with self._swapping:
            drops = self._pipeline.drops() if self._pipeline else {}
        return {"ports": ports, **native.as_dict(loop), "pipeline_drops": drops}

    def _port_stats(self, port: int) -> dict[str, Any]:
        stats = native.PortStats()
        self._lib.loop_read_port_stats(self._loop, port, ctypes.byref(stats))
        losses = {loss.name: self._loss_stats(loss) for loss in self._losses if loss.port == port}
        return {"interface": self._names[port], **native.as_dict(stats), **losses}

    def _loss_stats(self, loss: Loss) -> dict[str, Any]:
        stats = native.DropStats()
        numbers = (ctypes.c_uint64 * native.DROP_NUMBERS)()
        self._lib.loop_read_drop_stats(
            self._loop, loss.port, loss.outgoing, ctypes.byref(stats), numbers, len(numbers)
        )
        kept = min(stats.dropped, native.DROP_NUMBERS)
        return {**native.as_dict(stats), "numbers": numbers[:kept]}

    def stop(self) -> None:
        """Ends the forwarding thread. Statistics can be read until `close()`, which also completes
        the captures."""
        self._lib.loop_stop(self._loop)

    def close(self) -> None:
        """Stops the loop and releases everything it holds. The loop cannot be used afterwards."""
        if self._loop:
            self._lib.loop_free(self._loop)
            self._loop = ctypes.c_void_p()
        if self.controller:
            self.controller.close()
        self._pipeline = self._program = None


def _check(result: int, what: str) -> None:
    if result < 0:
        raise PacketLoopError(f"{what}: {os.strerror(-result)}", -result)


def _explain(code: int, port: int, interface: str, step: str) -> str:
    where = f"port {port} ({interface})"
    if step == "port number":
        if code == errno.ENODEV:
            return f"{where}: an interface name has at most 15 characters"
        return f"{where}: the port number is used twice or not in 0..{MAX_PORT}"
    if step == "interface":
        return f"{where}: no such interface in this network namespace"
    if code in (errno.EPERM, errno.EACCES):
        return f"{where}: no permission to open a packet socket: run as root or with CAP_NET_RAW"
    return f"{where}: {step}: {os.strerror(code)}"
