"""The targets for messages of the laboratory's own programs: lines that agents send, and datagrams
that workers receive."""

from __future__ import annotations

import json
import random
import socket
import tempfile
from pathlib import Path
from typing import Any

from agglab.hosts.wire import Chunk, Kind
from agglab.testbed.base.errors import AgentFailed
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.real.agents import Agents
from p4native.verification.fuzz import Target


class AgentTarget(Target):
    """The target for messages that agents send on the control socket. They must be read as events
    or lead to AgentFailed."""

    name = "agents"

    def draw(self, rng: random.Random) -> str:
        good = {"event": "ready", "job": 0, "name": "w0", "rank": 0}
        lines = []
        for _ in range(rng.randrange(1, 5)):
            event: Any = dict(good)
            if rng.random() < 0.7:
                key = rng.choice([*good, "other"])
                event[key] = rng.choice(
                    (None, [], {}, "", -1, 1 << 70, 1.5, True, "w0", [[]], {"a": []})
                )
            if rng.random() < 0.2:
                event.pop(rng.choice(list(event)))
            line = json.dumps(rng.choice((event, event, event, [], 3, None, "x")))
            lines.append(line if rng.random() < 0.8 else line[: rng.randrange(len(line) + 1)])
        return "\n".join(lines) + "\n"

    def survive(self, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder, Agents(Path(folder) / "s") as agents:
            agents.expect(WorkerId(0, "w0"))
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.connect(str(agents.path))
                peer.sendall(text.encode())
            try:
                while agents.poll(0.0):
                    pass
                agents.poll(0.0)
            except AgentFailed as error:
                assert "\n" not in str(error)


class DatagramTarget(Target):
    """The target for UDP payloads that a worker receives. The worker must read each as a chunk or
    ignore it."""

    name = "datagrams"

    def draw(self, rng: random.Random) -> str:
        lanes = rng.choice((1, 3, 64))
        values = tuple(rng.getrandbits(31) for _ in range(lanes))
        chunk = Chunk(rng.choice(list(Kind)), 1, rng.randrange(4), rng.randrange(4), values=values)
        data = bytearray(chunk.emit())
        for _ in range(rng.randrange(4)):
            data[rng.randrange(min(len(data), 24))] = rng.randrange(256)
        if rng.random() < 0.4:
            data = data[: rng.randrange(len(data))] + rng.randbytes(rng.choice((0, 0, 9, 9000)))
        return f"{lanes} {data.hex()}"

    def survive(self, text: str) -> None:
        lanes, data = text.split(" ", 1)
        datagram = bytes.fromhex(data)
        chunk = Chunk.parse(datagram, int(lanes))
        if chunk is not None:
            assert str(chunk) and chunk.emit() == datagram
