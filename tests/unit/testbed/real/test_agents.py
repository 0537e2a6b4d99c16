"""The control socket, with agents played by the test."""

import contextlib
import json
import os
import socket
from pathlib import Path

import pytest

from agglab.testbed.base.errors import AgentFailed
from agglab.testbed.base.worker_id import WorkerId
from agglab.testbed.real.agents import Agents

FIRST, SECOND = WorkerId(1, "h1"), WorkerId(1, "h2")


class Agent:
    """The other end of the socket, driven line by line."""

    def __init__(self, agents: Agents, job: int = 1, name: str = "h1", rank: int = 0) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(agents.path))
        self.lines = self.socket.makefile("r")
        self.identity = {"job": job, "name": name, "rank": rank}

    def say(self, event: str, **content: object) -> None:
        self.raw(json.dumps({"event": event, **self.identity, **content}).encode() + b"\n")

    def raw(self, text: bytes) -> None:
        self.socket.sendall(text)

    def hear(self) -> dict:
        return json.loads(self.lines.readline())


@pytest.fixture
def agents(tmp_path: Path):
    path = Path(f"/tmp/agglab-test-{os.getpid()}.sock")
    path.unlink(missing_ok=True)
    with Agents(path) as control:
        control.expect(FIRST)
        control.expect(SECOND)
        yield control
    path.unlink()


def heard(agents: Agents, count: int) -> list[dict]:
    events: list[dict] = []
    for _ in range(100):
        events += agents.poll(0.1)
        if len(events) >= count:
            return events
    raise AssertionError(f"{len(events)} of {count} events came")


def test_events_come_in_and_commands_go_to_whom_they_are_for(agents: Agents) -> None:
    first, second = Agent(agents), Agent(agents, name="h2", rank=1)
    first.say("ready")
    second.say("ready")
    assert {event["name"] for event in heard(agents, 2)} == {"h1", "h2"}
    agents.send(SECOND, {"command": "round", "round": 3})
    agents.send(FIRST, {"command": "stop"})
    assert second.hear() == {"command": "round", "round": 3}
    assert first.hear() == {"command": "stop"}
    second.say("round", round=3)
    assert heard(agents, 1) == [{"event": "round", **second.identity, "round": 3}]


def test_a_line_may_arrive_in_pieces_and_several_at_once(agents: Agents) -> None:
    agent = Agent(agents)
    text = b"".join(
        json.dumps({"event": e, **agent.identity}).encode() + b"\n" for e in ("ready", "progress")
    )
    agent.raw(text[:70])
    assert len(heard(agents, 1)) == 1
    agent.raw(text[70:80])
    assert agents.poll(0.2) == []
    agent.raw(text[80:])
    assert heard(agents, 1) == [{"event": "progress", **agent.identity}]


def test_nobody_hears_a_command_to_an_agent_that_has_gone(agents: Agents) -> None:
    agent = Agent(agents)
    agent.say("ready")
    heard(agents, 1)
    agent.lines.close()
    agent.socket.close()
    agents.poll(0.2)
    agents.send(FIRST, {"command": "round"})
    agents.send(SECOND, {"command": "round"})


def test_an_agent_that_is_started_again_takes_its_place(agents: Agents) -> None:
    old = Agent(agents)
    old.say("ready")
    heard(agents, 1)
    agents.expect(FIRST)
    new = Agent(agents)
    new.say("ready")
    heard(agents, 1)
    agents.send(FIRST, {"command": "stop"})
    assert new.hear() == {"command": "stop"}


READY = {"event": "ready", "job": 1, "name": "h1", "rank": 0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (json.dumps(READY | {"name": "h3"}).encode(), "says that it is 'h3' of job 1"),
        (json.dumps(READY | {"job": 2}).encode(), "says that it is 'h1' of job 2"),
        (json.dumps(READY | {"rank": None}).encode(), "h1: sent a line that is not an event"),
        (json.dumps(READY | {"event": 1}).encode(), "h1: sent a line that is not an event"),
        (b"x" * (1 << 20) + b"x" * (1 << 17), "a line longer than 1048576 bytes"),
    ],
)
def test_nonsense_is_refused(agents: Agents, line: bytes, message: str) -> None:
    agent = Agent(agents)
    agent.socket.setblocking(False)
    left = line + b"\n"
    with pytest.raises(AgentFailed, match=message):
        for _ in range(1000):
            with contextlib.suppress(BlockingIOError):
                left = left[agent.socket.send(left) :] if left else left
            agents.poll(0.05)


def test_one_connection_is_one_agent(agents: Agents) -> None:
    agent = Agent(agents)
    agent.say("ready")
    heard(agents, 1)
    agent.say("ready", name="h2")
    with pytest.raises(AgentFailed, match="says that it is 'h2'"):
        heard(agents, 1)
