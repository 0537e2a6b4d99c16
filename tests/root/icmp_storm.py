"""Two workers and a switch on a loopback interface, while someone sends them ICMP messages.

Run inside a network namespace of its own; prints what came of it as one JSON object.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit/hosts"))

import numpy as np
from loopback import LoopbackSwitch, worker_bind
from switch_model import JobEntry

from agglab.hosts import AllReducer
from agglab.testbed.systems.frames import End, icmp, ipv4, udp

LANES, SLOTS, ELEMENTS, JOB, ROUNDS = 8, 16, 4000, 3, 2
EVERY = 20
"""Results between two messages."""
CODES = {3: 16, 4: 1, 5: 4, 11: 2, 12: 3}
SMALLEST_MTU = struct.pack("!HH", 0, 68)


class Outsider:
    """Sends messages about what workers sent. `kind`: type and code; None for nothing."""

    def __init__(self, workers: list[AllReducer], aggregator: tuple[str, int]) -> None:
        self.kind: tuple[int, int] | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self._aggregator = _end(aggregator)
        self._workers = [_end(one._link.socket.getsockname()) for one in workers]
        self._results = 0

    def tamper(self, result: bytes) -> list[bytes]:
        self._results += 1
        if self._results % EVERY == 0:
            self.strike()
        return [result]

    def strike(self) -> None:
        if self.kind is None:
            return
        for worker in self._workers:
            quoted = ipv4(
                worker.ip, self._aggregator.ip, udp(worker, self._aggregator, b"12345678")
            )
            rest = b"\x14\0\0\0" if self.kind[0] == 12 else SMALLEST_MTU
            message = icmp(*self.kind, rest, quoted)
            self._socket.sendto(message, (socket.inet_ntoa(worker.ip), 0))


def _end(address: tuple[str, int]) -> End:
    return End(b"", socket.inet_aton(address[0]), address[1])


def main() -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    inputs = [np.arange(ELEMENTS, dtype=np.int32) * (rank + 1) for rank in range(2)]
    errors: dict[str, int] = {}
    rounds = exact = 0
    with LoopbackSwitch(LANES, {JOB: JobEntry(2, SLOTS)}) as switch, ThreadPoolExecutor() as pool:
        workers = [
            AllReducer(JOB, rank, 2, LANES, SLOTS, worker_bind(rank), switch.address)
            for rank in range(2)
        ]
        outsider = Outsider(workers, switch.address)
        switch.tamper = outsider.tamper
        for kind, codes in CODES.items():
            for code in range(codes):
                outsider.kind = (kind, code)
                before = [worker.stats["network_errors"] for worker in workers]
                for _ in range(ROUNDS):
                    totals = list(pool.map(lambda w, v: w.all_reduce(v), workers, inputs))
                    rounds += 1
                    exact += all((total == sum(inputs)).all() for total in totals)
                now = [worker.stats["network_errors"] for worker in workers]
                errors[f"{kind}/{code}"] = min(b - a for a, b in zip(before, now, strict=True))
        for worker in workers:
            worker.close()
        unsent = _unsent_after_one_message(switch)
    print(json.dumps({"rounds": rounds, "exact": exact, "errors": errors, "unsent": unsent}))


def _unsent_after_one_message(switch: LoopbackSwitch) -> int:
    """An error that waits when a round begins must not cost a datagram."""
    switch.model.admit(JOB + 1, JobEntry(1, SLOTS))
    with AllReducer(JOB + 1, 0, 1, LANES, SLOTS, worker_bind(0), switch.address) as worker:
        outsider = Outsider([worker], switch.address)
        switch.tamper = lambda result: [result]
        outsider.kind = (3, 4)
        outsider.strike()
        worker.all_reduce(np.ones(ELEMENTS, np.int32))
        assert worker.stats["network_errors"] == 1, worker.stats
        return worker.stats["unsent"]


main()
