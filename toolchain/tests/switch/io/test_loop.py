"""The packet loop without interfaces: the CPU port is a socket, so no root is needed.

With the hand-written program of stub_pipeline.c; every test also runs under the sanitizers, in a
process of its own (test_the_loop_under_the_sanitizers).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4native.switch.io import Loss, PacketLoop, PacketLoopError

CPU_PORT = 3
"""The stub answers on the port of entry, but on 1 and 2."""
TO_NOWHERE = bytes.fromhex("020000000063")
GROUP = bytes.fromhex("ffffffffffff")
EMPTY = bytes.fromhex("020000000064")
BACK = bytes.fromhex("020000000001")
SYS_FUTEX, SYS_POLL = (202, 7) if platform.machine() == "x86_64" else (98, 73)


class Stub:
    """A compiled program as PacketLoop wants it."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))
        self._library.pl_new.restype = ctypes.c_void_p
        self._library.pl_new.argtypes = [ctypes.c_uint64]
        self.handle: int = self._library.pl_new(0)

    def function_address(self, name: str) -> int:
        address = ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        assert address is not None
        return address

    def lock(self) -> None:
        self._library.pl_lock(ctypes.c_void_p(self.handle))

    def unlock(self) -> None:
        self._library.pl_unlock(ctypes.c_void_p(self.handle))

    def drops(self) -> dict[str, int]:
        counts = (ctypes.c_uint64 * 1)()
        self._library.pl_drops(ctypes.c_void_p(self.handle), counts, 1)
        return {"seen": counts[0]}


@pytest.fixture
def stub(stub_library: Path) -> Stub:
    return Stub(stub_library)


@pytest.fixture
def loop(stub: Stub) -> Iterator[PacketLoop]:
    with PacketLoop({}, cpu_port=CPU_PORT) as loop:
        loop.set_pipeline(stub)
        loop.start()
        yield loop


def exchange(loop: PacketLoop, frame: bytes) -> bytes:
    assert loop.controller is not None
    loop.controller.settimeout(10)
    loop.controller.send(frame)
    return loop.controller.recv(70000)


def wait_until_counted() -> None:
    """A frame is counted once the call that sent it has returned; the loop then waits for more."""
    while data_plane_syscall() != SYS_POLL:
        pass


@pytest.mark.parametrize("length", [14, 60, 1514, 9014, 65553])
def test_frames_pass_unchanged(loop: PacketLoop, length: int) -> None:
    frame = BACK + os.urandom(length - 6)
    assert exchange(loop, frame) == frame
    wait_until_counted()
    counts = loop.stats()["ports"][str(CPU_PORT)]
    assert (counts["rx_packets"], counts["rx_bytes"], counts["tx_bytes"]) == (1, length, length)


def test_many_frames_keep_their_order(loop: PacketLoop) -> None:
    controller = loop.controller
    assert controller is not None
    controller.settimeout(10)
    frames = [BACK + number.to_bytes(4, "big") + bytes(50 + number % 900) for number in range(3000)]

    def send() -> None:
        for frame in frames:
            controller.send(frame)

    # The pair's buffer holds fewer than this; whoever sends must not be the one who receives.
    sender = threading.Thread(target=send)
    received: list[bytes] = []
    sender.start()
    dropped = 0
    while len(received) + dropped < len(frames):
        try:
            controller.settimeout(0.5)
            received.append(controller.recv(70000))
        except TimeoutError:
            dropped = len(frames) - len(received)
    sender.join()
    assert [frame for frame in frames if frame in set(received)] == received
    assert len(received) > 100


def splitmix64(key: int, k: int) -> int:
    """Vigna's splitmix64.c: output k from a state that starts at key."""
    mask = (1 << 64) - 1
    z = (key + (k + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_seeded_losses_on_the_way_in_and_out(stub: Stub) -> None:
    limit = 1 << 62
    losses = (Loss(CPU_PORT, False, 1234567, limit), Loss(CPU_PORT, True, 1 << 63, limit))
    lost_in = [k for k in range(300) if splitmix64(1234567, k) < limit]
    through = [k for k in range(300) if k not in lost_in]
    lost_out = [k for k in range(len(through)) if splitmix64(1 << 63, k) < limit]
    arrive = [number for k, number in enumerate(through) if k not in lost_out]
    with PacketLoop({}, cpu_port=CPU_PORT, losses=losses) as loop:
        loop.set_pipeline(stub)
        loop.start()
        assert loop.controller is not None
        loop.controller.settimeout(10)
        received: list[int] = []
        for number in range(300):
            loop.controller.send(BACK + number.to_bytes(2, "big") + bytes(52))
            if number in arrive:
                received.append(int.from_bytes(loop.controller.recv(100)[6:8], "big"))
        while (counts := loop.stats()["ports"][str(CPU_PORT)])["drop_out"]["seen"] < len(through):
            pass
        while (counts := loop.stats()["ports"][str(CPU_PORT)])["tx_packets"] < len(arrive):
            pass
    assert received == arrive
    assert counts["drop_in"]["numbers"] == lost_in
    assert counts["drop_in"]["dropped"] == len(lost_in)
    assert counts["drop_in"]["dropped_bytes"] == 60 * len(lost_in)
    assert counts["drop_in"]["seen"] == 300
    assert counts["drop_out"]["numbers"] == lost_out
    assert (counts["rx_packets"], counts["tx_packets"]) == (len(through), len(arrive))


@pytest.mark.parametrize(("threshold", "passes"), [(0, True), (1 << 64, False)])
def test_a_threshold_of_nothing_and_of_all(stub: Stub, threshold: int, passes: bool) -> None:
    losses = [Loss(CPU_PORT, False, 5, threshold)]
    with PacketLoop({}, cpu_port=CPU_PORT, losses=losses) as loop:
        loop.set_pipeline(stub)
        loop.start()
        assert loop.controller is not None
        for _ in range(100):
            loop.controller.send(BACK + bytes(54))
        while loop.stats()["ports"][str(CPU_PORT)]["drop_in"]["seen"] < 100:
            pass
        dropped = loop.stats()["ports"][str(CPU_PORT)]["drop_in"]["dropped"]
    assert dropped == (0 if passes else 100)


def test_a_port_that_does_not_exist_is_counted(loop: PacketLoop) -> None:
    assert loop.controller is not None
    loop.controller.send(TO_NOWHERE + bytes(54))
    loop.controller.send(GROUP + bytes(54))  # ports 1 and 2 do not exist either
    assert exchange(loop, BACK + bytes(54)) == BACK + bytes(54)
    assert loop.stats()["no_port_drops"] == 3


def test_an_empty_frame_is_no_end_of_the_packets_in(loop: PacketLoop) -> None:
    """A message of no bytes would look to the controller's end like a switch that has ended."""
    assert loop.controller is not None
    loop.controller.send(EMPTY + bytes(54))
    assert exchange(loop, BACK + bytes(54)) == BACK + bytes(54)
    wait_until_counted()
    counts = loop.stats()["ports"][str(CPU_PORT)]
    assert (counts["rx_packets"], counts["tx_packets"], counts["tx_errors"]) == (2, 1, 1)


def test_without_a_program_frames_are_counted(stub: Stub) -> None:
    with PacketLoop({}, cpu_port=CPU_PORT) as loop:
        loop.start()
        assert loop.controller is not None
        for _ in range(3):
            loop.controller.send(BACK + bytes(54))
        while loop.stats()["no_program"] < 3:
            pass
        loop.set_pipeline(stub)
        assert exchange(loop, BACK + bytes(54))
        assert loop.stats()["no_program"] == 3


def test_programs_are_swapped_while_frames_flow(loop: PacketLoop, stub_library: Path) -> None:
    seen = 0
    current: Stub | None = None
    for number in range(50):
        assert exchange(loop, BACK + bytes(54))
        if current is not None:
            seen += current.drops()["seen"]
        current = Stub(stub_library)
        loop.set_pipeline(current)
        assert loop.stats()["pipeline_drops"] == {"seen": 0}, number
    assert seen == 49


def test_a_swap_waits_until_the_old_program_is_left(loop: PacketLoop, stub_library: Path) -> None:
    """While the loop is inside the old program (here: waits for its lock) the swap must wait."""
    old, new = Stub(stub_library), Stub(stub_library)
    loop.set_pipeline(old)
    assert exchange(loop, BACK + bytes(54)) and loop.controller is not None
    old.lock()
    loop.controller.send(BACK + bytes(54))
    while data_plane_syscall() != SYS_FUTEX:
        pass
    swap = threading.Thread(target=loop.set_pipeline, args=(new,))
    swap.start()
    swap.join(0.2)
    assert swap.is_alive()
    old.unlock()
    swap.join(10)
    assert not swap.is_alive() and old.drops()["seen"] == 2


def test_a_swap_ends_when_the_loop_is_stopped(loop: PacketLoop, stub_library: Path) -> None:
    old, new = Stub(stub_library), Stub(stub_library)
    loop.set_pipeline(old)
    assert loop.controller is not None
    old.lock()
    loop.controller.send(BACK + bytes(54))
    while data_plane_syscall() != SYS_FUTEX:
        pass
    swap = threading.Thread(target=loop.set_pipeline, args=(new,), daemon=True)
    stop = threading.Thread(target=loop.stop, daemon=True)
    for thread in (swap, stop):
        thread.start()
        thread.join(0.1)
        assert thread.is_alive(), "the loop is in the old program"
    old.unlock()
    for thread in (stop, swap):
        thread.join(10)
        assert not thread.is_alive()


def data_plane_syscall() -> int | None:
    """The system call that the thread waits in, None when it runs."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # other threads end
            if (task / "comm").read_text() == "data-plane\n":
                number = (task / "syscall").read_text().split()[0]
                return int(number) if number.isdecimal() else None
    return None


def test_statistics_survive_stop_and_an_idle_loop_sleeps(loop: PacketLoop) -> None:
    exchange(loop, BACK + bytes(54))
    before = loop.stats()
    loop.stop()
    after = loop.stats()
    assert after["cpu_ns"] >= before["cpu_ns"] > 0
    assert after["batches"] - before["batches"] <= 2, "it slept until it was stopped"


@pytest.mark.parametrize(
    ("interfaces", "cpu_port", "what"),
    [
        ({1: "no-such-if"}, None, "port 1 .no-such-if.: no such interface"),
        ({1: "name-longer-than-15"}, None, "at most 15"),
        ({600: "lo"}, None, "not in 0..511"),
    ],
)
def test_ports_that_cannot_be_opened(
    interfaces: dict[int, str], cpu_port: int | None, what: str
) -> None:
    with pytest.raises(PacketLoopError, match=what):
        PacketLoop(interfaces, cpu_port=cpu_port)


@pytest.mark.long
@pytest.mark.skipif("P4NATIVE_SANITIZE" in os.environ, reason="this is the process it starts")
def test_the_loop_under_the_sanitizers(tmp_path: Path) -> None:
    find = ["cc", "-print-file-name=libasan.so"]
    runtime = subprocess.run(find, capture_output=True, text=True, check=True).stdout.strip()
    environment = dict(
        os.environ,
        P4NATIVE_SANITIZE="1",
        P4NATIVE_CACHE=str(tmp_path),
        LD_PRELOAD=runtime,
        # Python itself keeps memory until it exits.
        ASAN_OPTIONS="detect_leaks=0",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
