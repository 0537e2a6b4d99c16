"""The switch model behind a UDP socket on 127.0.0.254; worker `rank` is 127.0.0.(rank + 1)."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable

from switch_model import JobEntry, SwitchModel


class LoopbackSwitch:
    """A thread that answers while the context lasts; each packet is lost by the chance `loss`."""

    def __init__(
        self, lanes: int, jobs: dict[int, JobEntry], loss: float = 0.0, seed: int = 0
    ) -> None:
        self.model = SwitchModel(lanes, jobs)
        self._loss, self._random = loss, random.Random(seed)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind(("127.0.0.254", 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._workers: dict[int, tuple[str, int]] = {}
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.tamper: Callable[[bytes], list[bytes]] = lambda result: [result]

    def _serve(self) -> None:
        while True:
            payload, source = self._socket.recvfrom(65536)
            if not payload and source == self.address:
                return
            rank = int(source[0].rsplit(".", 1)[1]) - 1
            self._workers[rank] = source
            if self._random.random() >= self._loss:
                self._answer(rank, payload)

    def _answer(self, rank: int, payload: bytes) -> None:
        for target, result in self.model.process(rank, payload):
            if self._random.random() >= self._loss:
                for datagram in self.tamper(result):
                    self._socket.sendto(datagram, self._workers[target])

    def __enter__(self) -> LoopbackSwitch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.sendto(b"", self.address)
        self._thread.join()
        self._socket.close()


def worker_bind(rank: int) -> tuple[str, int]:
    """Address and a free port for a worker."""
    return f"127.0.0.{rank + 1}", 0
