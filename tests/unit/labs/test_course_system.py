"""The system of the course: its worker, what it predicts, and that what is wrong is found."""

from __future__ import annotations

import importlib.util
import io
import json
import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from exercises import ROOT

from agglab.hosts.endpoint import NEVER_NS, Inbox, Repeat
from agglab.hosts.errors import RoundTimeout
from agglab.hosts.part import WORKER, Part
from agglab.hosts.workloads import Dense
from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.run.programs.program import compile_program
from agglab.testbed.scenario import ScenarioError, load

COURSE = ROOT / "labs/course"
SOLUTION = ROOT / "labs/05-loss/solution.p4"
MS = 1_000_000


def imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"course_{file.stem}", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


worker, course = imported(COURSE / "worker.py"), imported(COURSE / "course.py")


def began(
    values: int, slots: int = 2, ahead: int = 1, timeout_ns: int = 0, sparse: bool = False
) -> tuple[Any, Any]:
    """A worker that has begun a round of the values 0, 1, 2..., and the array for its result."""
    settings = {
        "session": 1,
        "slots": slots,
        "ahead": ahead,
        "sparse": sparse,
        "timeout_ns": timeout_ns,
        "peers": [["10.0.255.254", 48864]],
    }
    work = Dense(values, "int32")
    part = Part(1, WORKER, 0, 2, ("10.0.0.1", 48864), None, work, 1.0, settings)
    endpoint, out = worker.endpoint(part), np.zeros(values, np.int32)
    endpoint.begin(0, np.arange(values, dtype=np.int32), out)
    return endpoint, out


def sent(endpoint: Any, now_ns: int) -> list[tuple[int, ...]]:
    """(kind, worker, slot, tag, four numbers) of each packet that it sends now."""
    rows = endpoint.poll(now_ns)
    return [struct.unpack("!BBHI4i", endpoint.outbox.datagram(row)) for row in rows]


def receive(endpoint: Any, now_ns: int, *payloads: bytes) -> int:
    inbox = Inbox(8, endpoint.longest_bytes)
    inbox.fill(payloads)
    return int(endpoint.on_datagrams(now_ns, inbox))


def result(slot: int, tag: int, *numbers: int) -> bytes:
    return struct.pack("!BBHI4i", 2, 0, slot, tag, *numbers)


def test_chunks_go_to_slots_in_turn_and_a_slot_is_used_again_when_its_result_is_there() -> None:
    endpoint, out = began(10)
    assert sent(endpoint, 0) == [(1, 0, 0, 0, 0, 1, 2, 3), (1, 0, 1, 0, 4, 5, 6, 7)]
    assert sent(endpoint, 1) == []
    assert receive(endpoint, 2, result(0, 0, 10, 20, 30, 40)) == 1
    assert sent(endpoint, 3) == [(1, 0, 0, 1, 8, 9, 0, 0)]
    assert receive(endpoint, 4, result(1, 0, 5, 6, 7, 8), result(0, 1, 9, 9, 0, 0)) == 2
    assert endpoint.done and out.tolist() == [10, 20, 30, 40, 5, 6, 7, 8, 9, 9]


def test_two_chunks_of_a_slot_may_be_under_way() -> None:
    endpoint, _ = began(16, slots=1, ahead=2)
    assert [packet[2:4] for packet in sent(endpoint, 0)] == [(0, 0), (0, 1)]
    receive(endpoint, 1, result(0, 1, 0, 0, 0, 0))
    assert sent(endpoint, 1) == []  # tag 2 uses the set of tag 0
    receive(endpoint, 2, result(0, 0, 0, 0, 0, 0))
    assert [packet[3] for packet in sent(endpoint, 2)] == [2, 3]


def test_what_has_no_result_is_sent_again_if_there_is_a_timeout() -> None:
    endpoint, _ = began(8, timeout_ns=20 * MS)
    first = sent(endpoint, 0)
    assert endpoint.deadline_ns == 20 * MS
    receive(endpoint, MS, result(0, 0, 0, 0, 0, 0))
    assert sent(endpoint, 20 * MS) == first[1:]
    assert endpoint.repeats(0) == Repeat(1, 0, 0, gathered=True)
    assert endpoint.counters["retransmitted"] == 1
    patient, _ = began(8)
    assert len(sent(patient, 0)) == 2 and sent(patient, 900 * MS) == []
    assert patient.repeats(0) is None


def test_what_nobody_waits_for_changes_nothing() -> None:
    endpoint, out = began(4)
    sent(endpoint, 0)
    right = result(0, 0, 1, 2, 3, 4)
    wrong = (right[:-1], right + b"0", b"\1" + right[1:], result(1, 0, 9, 9, 9, 9), b"")
    assert receive(endpoint, 1, *wrong) == 0
    assert receive(endpoint, 2, right, result(0, 0, 9, 9, 9, 9)) == 1
    assert out.tolist() == [1, 2, 3, 4]
    assert (endpoint.counters["malformed"], endpoint.counters["duplicates"]) == (4, 2)


def sparse_result(chunk: int, following: int, *numbers: int) -> bytes:
    return struct.pack("!BBHII4i", 2, 0, 0, chunk, following, *numbers)


def test_of_sparse_tensors_only_chunks_that_are_not_zero_are_sent() -> None:
    endpoint, out = began(20, slots=1, sparse=True)  # chunks 0 to 4, of which 1 and 2 become zero
    endpoint.begin(0, np.array([1, 2, 3, 4, *[0] * 8, 5, 6, 7, 8, 9, 0, 0, 0], np.int32), out)
    assert sent_sparse(endpoint, 0) == [(1, 0, 0, 5, 8, 1, 2, 3, 4)]  # a round had five chunks
    both = sparse_result(5, 6, 10, 10, 10, 10), sparse_result(6, 8, 7, 7, 7, 7)
    assert receive(endpoint, 1, *both) == 2  # chunk 1 is another worker's
    assert sent_sparse(endpoint, 1) == [(1, 0, 0, 8, 9, 5, 6, 7, 8)]
    assert receive(endpoint, 2, sparse_result(8, 9, 5, 6, 7, 8)) == 1
    assert sent_sparse(endpoint, 2) == [(1, 0, 0, 9, 10, 9, 0, 0, 0)]
    assert not endpoint.done and receive(endpoint, 3, sparse_result(9, 10, 9, 0, 0, 0)) == 1
    assert endpoint.done
    assert out.tolist() == [*[10] * 4, *[7] * 4, *[0] * 4, 5, 6, 7, 8, 9, 0, 0, 0]


def sent_sparse(endpoint: Any, now_ns: int) -> list[tuple[int, ...]]:
    """(kind, worker, slot, tag, next, four numbers) of each packet that it sends now."""
    rows = endpoint.poll(now_ns)
    return [struct.unpack("!BBHII4i", endpoint.outbox.datagram(row)) for row in rows]


def test_it_gives_up_when_nothing_comes() -> None:
    endpoint, _ = began(4)
    sent(endpoint, 0)
    assert endpoint.deadline_ns == 1000 * MS < NEVER_NS
    with pytest.raises(RoundTimeout, match="no result for chunk 0"):
        endpoint.poll(1000 * MS)


def test_the_header_is_as_wide_as_in_the_programs() -> None:
    described = compile_program(SOLUTION, "agglab", {}).description
    (fields,) = (h["fields"] for h in described["header_types"] if h["name"] == "course_t")
    bits = sum(width for _, width, *_ in fields)
    assert bits == 8 * worker.PAYLOAD_BYTES == 8 * course.HEADER.size
    frames = [
        worker.LOWER_HEADER_BYTES + each.longest_bytes
        for each in (worker.Worker, worker.SparseWorker)
    ]
    assert frames == [course.FRAME_BYTES, course.SPARSE_FRAME_BYTES]


def judged(tmp_path: Path, *settings: str, system: Path = COURSE / "course.py") -> dict[str, Any]:
    """The metrics of lab 05's scenario without loss."""
    given = [f"system={system}:Course", f"switch.program={SOLUTION}", *settings]
    suite = load(ROOT / "labs/05-loss/runs/no-loss.yaml", given)
    run(suite, tmp_path / "results", given, io.StringIO())
    (path,) = (tmp_path / "results").glob("*/latest/metrics.json")
    metrics: dict[str, Any] = json.loads(path.read_text())
    return metrics


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("topology.workers=9", "9 workers at a switch, but the course's bitmaps have 8 bits"),
        ("jobs=[{workers: h1}, {workers: h2}]", "the course's protocol has room for one job"),
    ],
)
def test_what_the_programs_have_no_room_for_is_refused(setting: str, why: str) -> None:
    given = [f"switch.program={SOLUTION}", setting]
    with pytest.raises(ScenarioError, match=why):
        load(ROOT / "labs/05-loss/runs/no-loss.yaml", given)


def test_the_right_program_is_right(tmp_path: Path) -> None:
    metrics = judged(tmp_path)
    assert metrics["ok"] and metrics["exact"] and metrics["links_as_predicted"]


@pytest.mark.parametrize(
    ("file", "old", "new", "missed"),
    [
        ("worker.py", "numbers[: self.out", "(numbers + 1)[: self.out", "exact = true, got false"),
        ("worker.py", "self.values[chunk].tobytes()", "bytes(16)", "exact = true, got false"),
        (
            "course.py",
            "chunks * self.chunk_bits",
            "2 * self.chunk_bits",
            "links_as_predicted = true",
        ),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, file: str, old: str, new: str, missed: str) -> None:
    for path in COURSE.glob("*.py"):
        text = path.read_text()
        assert path.name != file or text.count(old) == 1
        (tmp_path / path.name).write_text(text.replace(old, new) if path.name == file else text)
    metrics = judged(tmp_path, system=tmp_path / "course.py")
    assert not metrics["ok"] and missed in metrics["reason"]
