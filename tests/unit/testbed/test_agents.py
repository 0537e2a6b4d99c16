"""The control socket, with agents played by threads."""

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.agents import AgentFailed, Agents
from testbed.network import NodeFailed


class Process:
    """A NodeProcess that ends when it is told to."""

    node = "h1"
    command = ("python", "-m", "hosts.agent")

    def __init__(self, log: Path) -> None:
        self.log = log
        self.status: int | None = None

    def poll(self) -> int | None:
        return self.status

    def wait(self, timeout_s: float | None = None) -> int:
        return 0


class Agent:
    """The other end of the socket, driven line by line."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("r")

    def say(self, **event: object) -> None:
        self.socket.sendall(json.dumps(event).encode() + b"\n")

    def hear(self) -> dict:
        return json.loads(self.lines.readline())


@pytest.fixture
def path() -> Path:
    return Path(f"/tmp/agglab-test-{os.getpid()}-{threading.get_ident()}.sock")


@pytest.fixture
def play(path: Path):
    """Run `script(agent)` in a thread of its own for each of several agents."""
    threads: list[threading.Thread] = []

    def start(*scripts: Callable[[Agent], None]) -> None:
        for script in scripts:
            thread = threading.Thread(target=lambda s=script: s(Agent(path)), daemon=True)
            threads.append(thread)
            thread.start()

    yield start
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    path.unlink(missing_ok=True)


def worker(rank: int, rounds: int = 1) -> Callable[[Agent], None]:
    def script(agent: Agent) -> None:
        agent.say(event="ready", rank=rank)
        for _ in range(rounds):
            number = agent.hear()["round"]
            agent.say(event="progress", rank=rank, round=number, chunks=1, of=2)
            agent.say(event="round", rank=rank, round=number, start_ns=rank, end_ns=10 + rank)
        assert agent.hear() == {"command": "stop"}
        agent.socket.close()

    return script


def test_rounds_start_and_end_together(path: Path, play) -> None:
    events: list[dict] = []
    with Agents(path, 3, events.append) as agents:
        play(worker(2, 2), worker(0, 2), worker(1, 2))
        agents.wait_ready(10)
        for number in (0, 1):
            ended = agents.round(number, 10, lambda: None)
            assert sorted(ended) == [0, 1, 2]
            assert all(event["round"] == number for event in ended.values())
        agents.stop()
    assert sum(event["event"] == "progress" for event in events) == 6


def test_a_line_may_arrive_in_pieces(path: Path, play) -> None:
    def slow(agent: Agent) -> None:
        text = b'{"event": "ready", "rank": 0}\n{"event": "progress", "rank": 0}\n'
        for start in range(0, len(text), 7):
            agent.socket.sendall(text[start : start + 7])
        agent.lines.readline()

    events: list[dict] = []
    with Agents(path, 1, events.append) as agents:
        play(slow)
        agents.wait_ready(10)
        agents.stop()
    assert events[0] == {"event": "ready", "rank": 0}


def test_a_worker_that_gives_up_is_named(path: Path, play) -> None:
    def failing(agent: Agent) -> None:
        agent.say(event="ready", rank=1)
        agent.hear()
        agent.say(event="failed", rank=1, round=0, error="nothing heard for 10 s: chunks 3, 7")
        agent.lines.readline()

    def patient(agent: Agent) -> None:
        agent.say(event="ready", rank=0)
        agent.lines.readline()
        agent.lines.readline()

    with Agents(path, 2, lambda event: None) as agents:
        play(failing, patient)
        agents.wait_ready(10)
        with pytest.raises(AgentFailed, match="worker 1: nothing heard for 10 s: chunks 3, 7"):
            agents.round(0, 10, lambda: None)


def test_who_is_not_ready_is_named(path: Path, play, tmp_path: Path) -> None:
    def ready(agent: Agent) -> None:
        agent.say(event="ready", rank=0)
        agent.lines.readline()

    with Agents(path, 2, lambda event: None) as agents:
        play(ready)
        agents.watch(1, Process(tmp_path / "log"))
        with pytest.raises(NodeFailed, match=r"worker 1 not ready after 0\.3 s"):
            agents.wait_ready(0.3)


def test_a_process_that_dies_ends_the_run(path: Path, play, tmp_path: Path) -> None:
    process = Process(tmp_path / "log")

    def dying(agent: Agent) -> None:
        agent.say(event="ready", rank=0)
        agent.hear()
        agent.socket.close()
        process.status = -9

    with Agents(path, 1, lambda event: None) as agents:
        agents.watch(0, process)
        play(dying)
        agents.wait_ready(10)
        with pytest.raises(NodeFailed, match="h1: worker 0 ended early with status -9"):
            agents.round(0, 10, lambda: None)


def test_a_round_without_end_times_out(path: Path, play) -> None:
    def silent(agent: Agent) -> None:
        agent.say(event="ready", rank=0)
        agent.lines.readline()
        agent.lines.readline()

    with Agents(path, 1, lambda event: None) as agents:
        play(silent)
        agents.wait_ready(10)
        with pytest.raises(AgentFailed, match=r"worker 0: round 5 not over after 0\.2 s"):
            agents.round(5, 0.2, lambda: None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense\n", "not a JSON object"),
        (b"[1]\n", "not a JSON object"),
        (b'{"event": "ready", "rank": 2}\n', "names itself worker 2, of 2"),
        (b'{"event": "ready"}\n', "names itself worker None"),
        (b"x" * (1 << 20) + b"xx", "a line over 1048576 bytes"),
    ],
)
def test_nonsense_is_refused(path: Path, play, line: bytes, message: str) -> None:
    def talk(agent: Agent) -> None:
        agent.socket.sendall(line)
        agent.lines.readline()

    with Agents(path, 2, lambda event: None) as agents:
        play(talk)
        with pytest.raises(AgentFailed, match=message):
            agents.wait_ready(10)
