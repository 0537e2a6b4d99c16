"""Agents in virtual time whose endpoint sends a datagram a second, in a round or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.virtual.clock import Clock
from agglab.testbed.virtual.workers import SIGKILL, AgentNode

SYSTEM = """
import numpy as np
from agglab.hosts.endpoint import Outbox

class Beacon:
    peers, longest_bytes = [("10.0.0.2", 1)], 64
    listens, done, chunks, chunks_done = True, True, 1, 0
    outbox = Outbox(np.zeros((1, 8), np.uint8), np.full(1, 8, np.uint32), np.zeros(1, np.uint32))
    counters = {"sent": 0, "retransmitted": 0}
    deadline_ns = 1_000_000_000

    def on_datagrams(self, now_ns, inbox):
        return inbox.count

    def poll(self, now_ns):
        due = now_ns >= self.deadline_ns
        if due:
            self.deadline_ns = (now_ns // 1_000_000_000 + 1) * 1_000_000_000
        return np.arange(due, dtype=np.uint32)

    def repeats(self, row):
        return None

    def waiting(self, most):
        return []

def endpoint(part):
    return Beacon()
"""
S = 1_000_000_000


class Rig:
    def __init__(self, folder: Path) -> None:
        (folder / "beacon.py").write_text(SYSTEM)
        self.clock = Clock()
        self.sent: list[int] = []
        self.events: list[dict[str, Any]] = []
        configuration = {
            "name": "h1",
            "system": str(folder / "beacon.py"),
            "role": "server",
            "job": 1,
            "rank": 2,
            "workers": 2,
            "bind": ["10.0.0.1", 9],
            "link_rate_bps": None,
            "work": {"kind": "allreduce", "elements": 1, "dtype": "int32"},
            "seed": 1,
            "give_up_s": 1.0,
            "settings": {},
        }
        self.node = AgentNode(
            self.clock,
            configuration,
            lambda peer, datagram: self.sent.append(self.clock.now_ns // S),
            self.events.append,
            lambda number, received: None,
        )
        self.node.receive(0, b"to set its timer")

    def until(self, seconds: float) -> list[int]:
        """When it has sent."""
        self.clock.run(round(seconds * S), lambda: False)
        return self.sent


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def test_who_listens_is_asked_between_rounds(rig: Rig) -> None:
    assert rig.until(3.5) == [1, 2, 3]
    assert [event["event"] for event in rig.events] == ["ready"]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_who_is_dead_sends_nothing_more(rig: Rig, end: str) -> None:
    rig.until(1.5)
    if end == "kill":
        rig.node.kill()
    else:
        rig.node.command({"command": "stop"})
    assert rig.until(9) == [1]
    status = -SIGKILL if end == "kill" else 0
    assert (rig.events[-1]["event"], rig.events[-1]["status"]) == ("ended", status)
    rig.node.command({"command": "report"})
    assert rig.events[-1]["event"] == "ended"


def test_who_is_paused_sends_nothing_and_does_later_what_it_was_told(rig: Rig) -> None:
    rig.until(1.5)
    rig.node.pause(True)
    rig.node.command({"command": "report"})
    rig.node.receive(0, b"meanwhile")
    assert rig.until(4.5) == [1] and rig.node.unread == 1
    rig.node.pause(False)
    assert rig.until(4.5) == [1, 4] and rig.node.unread == 0
    assert rig.events[-1]["event"] == "served"
