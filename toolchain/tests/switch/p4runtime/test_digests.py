"""Samples that wait, are on their way or are forgotten, by a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import p4native.switch.p4runtime  # before protobuf is first imported

# isort: split
from p4.v1.p4runtime_pb2 import DigestEntry, DigestListAck, Update

from p4native.compiler.command import main as compile_p4
from p4native.switch import Pipeline
from p4native.switch.p4runtime.digests import MAX_LIST, Digests
from p4native.switch.p4runtime.p4info import P4InfoIndex, entries
from p4native.switch.p4runtime.status import StatusError
from p4native.switch.p4runtime.text import read_p4info

assert p4native.switch.p4runtime

STATE = Path(__file__).parent / "state.p4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digests")
    outputs = ["-o", str(folder / "json"), "--p4runtime-files", str(folder / "p4info.txtpb")]
    assert compile_p4([str(STATE), *outputs]) == 0
    return folder


@pytest.fixture
def p4info(folder: Path) -> Any:
    return read_p4info((folder / "p4info.txtpb").read_bytes())


class Learner:
    """The digests of state.p4; `now_ns` is the time."""

    def __init__(self, pipeline: Pipeline, p4info: Any) -> None:
        self.now_ns = 0
        self.id = p4info.digests[0].preamble.id
        self.pipeline = pipeline
        self.digests = Digests(P4InfoIndex(p4info), pipeline, lambda: self.now_ns)

    def ask(self, kind: int = Update.INSERT, **config: int) -> None:
        entry = DigestEntry(digest_id=self.id, config=DigestEntry.Config(**config))
        self.digests.write(kind, entry)

    def learn(self, *values: int) -> list[list[int]]:
        """The first fields of the lists that are sent once packets with these were seen."""
        for value in values:
            self.pipeline.process(0, bytes([value, 0, 0xFF, 0x80]))
        return [
            [sample.struct.members[0].bitstring[0] for sample in message.data]
            for message in self.digests.collect()
        ]

    @property
    def known(self) -> int:
        return sum(len(stream.unacknowledged) for stream in self.digests._streams.values())


@pytest.fixture
def learner(folder: Path, p4info: Any) -> Iterator[Learner]:
    with Pipeline.load(folder / "json", quick=True) as pipeline:
        yield Learner(pipeline, p4info)


def test_what_nobody_acknowledges_is_forgotten_after_its_time(learner: Learner) -> None:
    learner.ask(max_list_size=1, ack_timeout_ns=100)
    assert learner.learn(1, 2, 3, 1) == [[1], [2], [3]]
    learner.now_ns = 99
    assert learner.learn(1, 2) == []
    learner.now_ns = 100
    assert learner.learn(4, 1) == [[4], [1]]
    assert learner.known == 2


def test_what_waits_is_not_added_again(learner: Learner) -> None:
    learner.ask(max_list_size=4, max_timeout_ns=10**9, ack_timeout_ns=10**12)
    assert learner.learn(1, 2, 1, 2, 3, 1) == []
    assert learner.learn(2, 4, 5) == [[1, 2, 3, 4]]
    learner.digests.acknowledge(DigestListAck(digest_id=learner.id, list_id=1))
    learner.now_ns = 10**9
    assert learner.learn(5, 1) == [[5, 1]]


def test_without_acknowledgements_any_more_equal_ones_are_sent_again(learner: Learner) -> None:
    learner.ask(max_list_size=4, max_timeout_ns=10**9, ack_timeout_ns=10**12)
    assert learner.learn(1, 2) == []
    learner.ask(Update.MODIFY, max_list_size=2)
    assert learner.learn() == [[1, 2]]
    assert learner.learn(1, 2) == [[1, 2]]


def test_a_list_has_a_largest_size(learner: Learner) -> None:
    learner.ask(max_list_size=10**9, max_timeout_ns=10**12)
    values = [n % 251 for n in range(2 * MAX_LIST + 5)]
    assert learner.learn(*values) == [values[:MAX_LIST], values[MAX_LIST : 2 * MAX_LIST]]
    learner.now_ns = 10**12
    assert learner.learn() == [values[2 * MAX_LIST :]]


def test_samples_that_keep_coming_do_not_delay_the_first(learner: Learner) -> None:
    learner.ask(max_list_size=9, max_timeout_ns=100)
    for learner.now_ns in (0, 60, 99):
        assert learner.learn(1) == []
    learner.now_ns = 100
    assert learner.learn(2) == [[1, 1, 1, 2]]
    for learner.now_ns in (150, 249):
        assert learner.learn(3) == [], "the time begins anew"
    learner.now_ns = 250
    assert learner.learn() == [[3, 3]]


WRONG = [
    (Update.INSERT, {}, "configured already"),
    (Update.MODIFY, {"max_timeout_ns": -1}, "max_timeout_ns is negative"),
    (Update.MODIFY, {"max_list_size": -1}, "max_list_size is negative"),
    (Update.MODIFY, {"ack_timeout_ns": -1}, "ack_timeout_ns is negative"),
]


@pytest.mark.parametrize(("kind", "config", "message"), WRONG)
def test_a_refused_configuration_changes_nothing(
    learner: Learner, kind: int, config: dict[str, int], message: str
) -> None:
    learner.ask(max_list_size=1)
    with pytest.raises(StatusError, match=message):
        learner.ask(kind, **config)
    assert learner.learn(1, 1) == [[1], [1]]


@pytest.mark.parametrize("change", ["less", "more"])
def test_a_type_that_does_not_fit_the_samples(folder: Path, p4info: Any, change: str) -> None:
    types = dict(entries(p4info.type_info.structs))
    members = types[p4info.digests[0].type_spec.struct.name].members
    if change == "less":
        members.pop()
    else:
        members.add(name="extra").type_spec.bitstring.bit.bitwidth = 8
    with Pipeline.load(folder / "json", quick=True) as pipeline:
        learner = Learner(pipeline, p4info)
        with pytest.raises(StatusError, match="the program's 3 fields"):
            learner.ask(max_list_size=1)
