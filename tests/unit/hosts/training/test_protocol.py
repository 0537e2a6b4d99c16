"""What a script and an agent say to each other, and what an agent makes of anything else. Without
PyTorch."""

from __future__ import annotations

import json
import mmap
import os
import queue
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from agglab.hosts.agreement import Agreement
from agglab.hosts.errors import NotFinite, RoundTimeout
from agglab.hosts.training import client, protocol, reporting
from agglab.hosts.training.client import Client, TrainingError
from agglab.hosts.training.jobs import Job, Piece
from agglab.hosts.training.protocol import ProtocolError
from agglab.hosts.training.service import Service, Terms

MESSAGES: list[protocol.Message] = [
    protocol.Welcome(protocol.VERSION, 0, 2, 100, 2, ["float32"], "127.0.0.1"),
    protocol.Refused("no"),
    protocol.Reduce(0, 1, 5, "float32", operation=1, tensors=2**16 - 1),
    protocol.Done(7),
    protocol.Failed(7, "a worker is missing", True),
    protocol.Report({"loss": 0.5, "epoch": 3, "parameters": "ab"}),
    protocol.Counts({"allreduce.op": 2}),
    protocol.Goodbye(),
]
ALL = tuple(type(message) for message in MESSAGES)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.kind)
def test_a_message_arrives_as_it_was(message: protocol.Message) -> None:
    assert protocol.unpack(protocol.pack(message), ALL) == message


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"number": -1}, "number must be at least 0"),
        ({"number": True}, "number must be of type int"),
        ({"number": 1.0}, "number must be of type int"),
        ({"slot": 64}, "slot must be below 64"),
        ({"slot": -1}, "slot must be below 64"),
        ({"elements": 0}, "elements must be at least 1"),
        ({"dtype": "float64"}, "dtype must be one of"),
        ({"dtype": None}, "dtype must be of type str"),
        ({"operation": 2}, "operation must be below 2"),
        ({"operation": -1}, "operation must be below 2"),
        ({"tensors": 2**16}, "tensors must have 16 bits"),
        ({"tensors": -1}, "tensors must have 16 bits"),
        ({"tensors": "1"}, "tensors must be of type int"),
        ({"more": 1}, "its fields must be number, slot, elements, dtype, operation, tensors"),
        ({"kind": "done"}, "its fields must be number"),
        ({"kind": "welcome"}, "a message of kind 'welcome'; expected"),
        ({"kind": []}, "a message of kind []; expected"),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, Any], says: str) -> None:
    fields = {"kind": "reduce", "number": 0, "slot": 0, "elements": 1, "dtype": "float32"}
    fields |= {"operation": 0, "tensors": 0}
    packet = json.dumps({**fields, **changed}).encode()
    allowed = tuple(each for each in ALL if each is not protocol.Welcome)
    with pytest.raises(ProtocolError) as caught:
        protocol.unpack(packet, allowed)
    assert says in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, None, [1], {"a": 1}])
def test_a_report_holds_finite_numbers_and_texts(value: Any) -> None:
    with pytest.raises(ProtocolError):
        protocol.pack(protocol.Report({"loss": value}))
    packet = json.dumps({"kind": "report", "values": {"loss": value}}).encode()
    with pytest.raises(ProtocolError):
        protocol.unpack(packet, ALL)


def test_a_number_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(ProtocolError, match="loss is inf; it must be finite"):
        protocol.unpack(b'{"kind": "report", "values": {"loss": 1e999}}', ALL)


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_whatever_comes_is_a_message_or_refused(packet: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        protocol.unpack(packet, ALL)
    assert "\n" not in str(caught.value)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_no_value_of_a_field_is_taken_unchecked(value: Any) -> None:
    packet = json.dumps({"kind": "done", "number": value}).encode()
    if type(value) is int and value >= 0:
        assert protocol.unpack(packet, ALL) == protocol.Done(value)
    else:
        with pytest.raises(ProtocolError):
            protocol.unpack(packet, ALL)


# The agent's end.


class World:
    """A service with what it was asked to do. failure: raised by the next reduction. during: what
    happens within the reduction with this number. sizes: the number of values of each."""

    def __init__(self, folder: Path) -> None:
        self.reports: list[Any] = []
        self.failure: Exception | None = None
        self.during: dict[int, Callable[[], object]] = {}
        self.sizes: list[int] = []
        self.path = str(folder / "socket")
        terms = Terms(0, 2, 100, "127.0.0.1")
        self.service = Service(self.path, terms, self._double, self.reports.append)

    def _double(self, values: NDArray, out: NDArray, agreement: Agreement) -> None:
        failure, self.failure = self.failure, None
        if failure:
            raise failure
        self.during.get(len(self.sizes), lambda: None)()
        self.sizes.append(values.size)
        assert values.ctypes.data == out.ctypes.data
        np.add(values, values, out=out)

    def turn(self) -> None:
        """All that has come."""
        while select.select([self.service.fileno()], [], [], 0)[0]:
            self.service.step()

    def connect(self) -> tuple[socket.socket, bytes, list[int]]:
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connected.connect(self.path)
        connected.settimeout(10)
        self.turn()
        packet, descriptors, _, _ = socket.recv_fds(connected, 65536, 4)
        return connected, packet, descriptors


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.service.close()


def test_a_reduction_happens_in_the_shared_memory(world: World) -> None:
    script, packet, (descriptor,) = world.connect()
    terms = protocol.unpack(packet, (protocol.Welcome,))
    assert (terms.elements, terms.slots) == (100, 2)
    memory = mmap.mmap(descriptor, terms.slots * terms.slot_bytes)
    for number, dtype in enumerate(("float32", "int32", "int32")):
        slot = number % 2
        values = np.frombuffer(memory, dtype, 3, slot * terms.slot_bytes)
        values[:] = [1, 2, 3]
        script.send(protocol.pack(protocol.Reduce(number, slot, 3, dtype)))
        world.turn()
        assert protocol.unpack(script.recv(65536), ALL) == protocol.Done(number)
        assert values.tolist() == [2, 4, 6]
    os.close(descriptor)


def test_nobody_can_make_the_memory_smaller(world: World) -> None:
    *_, (descriptor,) = world.connect()
    for size in (0, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("packet", "says"),
    [
        (b"", None),
        (b"nonsense", "a message that is not JSON"),
        (b"[" * 60000, "a message that is not JSON"),
        (protocol.pack(protocol.Done(0)), "a message of kind 'done'"),
        (protocol.pack(protocol.Reduce(1, 0, 5, "float32")), "number 1; expected 0"),
        (protocol.pack(protocol.Reduce(0, 2, 5, "float32")), "slot 2 with 5 elements"),
        (protocol.pack(protocol.Reduce(0, 0, 101, "float32")), "slot 0 with 101 elements"),
        (protocol.pack(protocol.Reduce(0, 0, 5, "float16")), "float16 is none of float32, int32"),
    ],
)
def test_a_script_that_breaks_the_protocol_is_told_and_left(
    world: World, packet: bytes, says: str | None
) -> None:
    script, _, (descriptor,) = world.connect()
    if packet:
        script.send(packet)
    else:
        script.close()
    world.turn()
    assert world.service.left and world.service.reductions == 0
    assert world.service.refused == (says is not None)
    if says:
        assert says in protocol.unpack(script.recv(65536), ALL).error
        assert script.recv(65536) == b""
    os.close(descriptor)


def test_a_second_process_is_refused_and_the_first_goes_on(world: World) -> None:
    first, _, (descriptor,) = world.connect()
    second, packet, none = world.connect()
    assert "another process" in protocol.unpack(packet, ALL).error
    assert not none and second.recv(100) == b""
    first.send(protocol.pack(protocol.Report({"loss": 1.5})))
    first.send(protocol.pack(protocol.Counts({"a": 1})))
    first.send(protocol.pack(protocol.Counts({"a": 2})))
    first.send(protocol.pack(protocol.Goodbye()))
    world.turn()
    assert world.reports == [{"loss": 1.5}] and world.service.counts == {"a": 3}
    assert world.service.goodbye and not world.service.left and world.service.refused == 1
    os.close(descriptor)


def test_the_last_messages_are_read_of_a_script_that_waits_for_no_answer(world: World) -> None:
    script, _, (descriptor,) = world.connect()
    for number in range(2):
        script.send(protocol.pack(protocol.Reduce(number, number, 5, "float32")))
    for message in (protocol.Counts({"a": 1}), protocol.Goodbye()):
        script.send(protocol.pack(message))
    script.shutdown(socket.SHUT_RDWR)
    world.turn()
    assert world.service.reductions == 2 and world.service.counts == {"a": 1}
    assert world.service.goodbye and world.service.left
    os.close(descriptor)


def test_a_failed_round_is_told_and_raised_unless_the_next_works(world: World) -> None:
    script, _, (descriptor,) = world.connect()
    world.failure = NotFinite("Inf or NaN\nin chunk 3")
    script.send(protocol.pack(protocol.Reduce(0, 0, 5, "float32")))
    world.turn()
    answer = protocol.unpack(script.recv(65536), ALL)
    assert answer == protocol.Failed(0, "Inf or NaN in chunk 3", False)
    world.failure = RoundTimeout("nothing came", [(0, 1)])
    script.send(protocol.pack(protocol.Reduce(1, 0, 5, "float32")))
    with pytest.raises(RoundTimeout):
        world.turn()
    answer = protocol.unpack(script.recv(65536), ALL)
    assert answer == protocol.Failed(1, "nothing came", True)
    os.close(descriptor)


# The script's end.


@pytest.fixture
def agent(world: World) -> Iterator[World]:
    """Serves in a thread until the test ends."""
    end, ended = os.pipe()
    failures: list[Exception] = []

    def serve() -> None:
        while world.service.fileno() in select.select([world.service.fileno(), end], [], [])[0]:
            try:
                world.service.step()
            except RoundTimeout as error:
                failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    yield world
    os.write(ended, b".")
    thread.join()
    os.close(end)
    os.close(ended)


def summed(script: Client, values: NDArray, pieces: int = 1) -> tuple[NDArray, str | None]:
    """By a job of several pieces; waits for it."""
    ended = submitted(script, values, pieces)
    return values, ended.get()


def submitted(
    script: Client, values: NDArray, pieces: int, priority: int | None = None
) -> queue.SimpleQueue[str | None]:
    parts = np.array_split(values, pieces)
    ended: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    made = [
        Piece(
            part.size,
            part.dtype.name,
            lambda slot, part=part: np.copyto(slot, part),  # type: ignore[misc]
            lambda slot, part=part: np.copyto(part, slot),  # type: ignore[misc]
        )
        for part in parts
    ]
    script.submit(Job(made, ended.put, priority))
    return ended


def test_jobs_of_several_pieces_end_with_their_sums(agent: World) -> None:
    script = Client(agent.path)
    script.report({"loss": 2.0})
    for pieces in (1, 2, 7):
        values, error = summed(script, np.arange(50, dtype="i4"), pieces)
        assert error is None and values.tolist() == list(range(0, 100, 2))
    assert agent.reports == [{"loss": 2.0}]
    script.close()
    script.close()
    assert summed(script, np.ones(3, "i4"))[1] == "the process group was closed"


@pytest.mark.parametrize("begins", [0, 1, 2, 3, 4])
def test_a_job_that_begins_within_a_turn_has_the_next(agent: World, begins: int) -> None:
    """The votes are the reductions 0, 2, 4 and so on, of 100 values, and the pieces have 60."""
    script, long, urgent = Client(agent.path), np.arange(240, dtype="i4"), np.ones(90, "i4")
    ended: list[queue.SimpleQueue[str | None]] = []
    agent.during[begins] = lambda: ended.append(submitted(script, urgent, 1, priority=1))
    assert submitted(script, long, 4, priority=0).get() is None
    assert ended[0].get() is None
    turns = [60] * 4
    turns.insert(1 + begins // 2, 90)  # those of a vote know it only at the next one
    assert agent.sizes[1::2] == turns and agent.sizes[::2] == [100] * 5
    assert long.tolist() == list(range(0, 480, 2)) and urgent.tolist() == [2] * 90
    script.close()


def test_nothing_waits_for_an_agent_that_has_failed(agent: World) -> None:
    script = Client(agent.path)
    agent.failure = NotFinite("Inf")
    assert summed(script, np.ones(5, "f4"))[1] == "Inf"
    assert summed(script, np.ones(5, "f4"))[1] is None
    agent.failure = RoundTimeout("nothing came", [])
    assert summed(script, np.ones(50, "f4"), 5)[1] == "nothing came"
    assert summed(script, np.ones(5, "f4"))[1] == "nothing came"


def test_the_reason_of_an_agent_that_has_gone_is_read(world: World) -> None:
    """It goes while the script is busy, and leaves a message of the script unread."""
    made: queue.SimpleQueue[Client] = queue.SimpleQueue()
    threading.Thread(target=lambda: made.put(Client(world.path))).start()
    world.service.wait(10)
    world.turn()
    script, goes_on = made.get(), threading.Event()
    ended: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    drains = [lambda slot: goes_on.wait(), lambda slot: None]
    script.submit(Job([Piece(1, "int32", lambda slot: None, drain) for drain in drains], ended.put))
    while world.service.reductions < 1:
        world.service.wait(10)
        world.service.step()
    world.failure = RoundTimeout("nothing came", [])
    world.service.wait(10)
    with pytest.raises(RoundTimeout):
        world.service.step()
    script.report({"loss": 1.0})
    world.service.close()
    goes_on.set()
    assert ended.get() == "nothing came"


def test_a_script_that_ended_without_reading_is_heard_to_the_end(world: World) -> None:
    script, _, (descriptor,) = world.connect()
    script.send(protocol.pack(protocol.Reduce(0, 0, 5, "float32")))
    world.turn()
    script.send(protocol.pack(protocol.Counts({"a": 1})))
    script.close()
    world.turn()
    assert world.service.counts == {"a": 1} and world.service.left
    os.close(descriptor)


def test_a_piece_that_cannot_be_filled_fails_its_job(agent: World) -> None:
    script = Client(agent.path)
    assert summed(script, np.ones(101, "f4"))[1] == (
        "the agent does not understand the script: "
        "reduce: slot 0 with 101 elements; there are 2 slots of 100"
    )


def test_where_no_agent_is_the_error_is_one_line(monkeypatch, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"^cannot talk to the agent at .*No such file"):
        Client(str(tmp_path / "nobody"))
    monkeypatch.delenv("AGGLAB_TRAINING", raising=False)
    with pytest.raises(TrainingError, match="AGGLAB_TRAINING is not set"):
        client.connect()
    assert not reporting.report(loss=1.0)
