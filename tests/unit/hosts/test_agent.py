"""Agents as processes, driven over their control sockets by a stand-in for the testbed."""

import functools
import json
import socket
import subprocess
import sys

import numpy as np
import pytest
import quantise_model
from agents import ELEMENTS, LANES, ROOT, SLOTS, agents, arrays, work

from agglab.hosts import agent as program
from agglab.hosts.bfloat16 import BFLOAT16, narrowed
from agglab.hosts.tensors import make_tensor

STATS = {
    "sent",
    "received",
    "retransmitted",
    "duplicates",
    "late",
    "malformed",
    "timeouts",
    "bytes_sent",
    "bytes_received",
}


@pytest.fixture
def start(tmp_path):
    with agents(tmp_path) as launch:
        yield launch


@functools.cache
def expected(round):
    """Returns (sums, floats) of a round, chunk by chunk."""
    tensors = [make_tensor(7, 2, rank, round, ELEMENTS, np.float32) for rank in range(2)]
    sums, floats = [], []
    for first in range(0, ELEMENTS, LANES):
        chunks = [tensor[first : first + LANES].tolist() for tensor in tensors]
        exponent = max(map(quantise_model.chunk_exponent, chunks))
        for pair in zip(*chunks, strict=True):
            sums.append(sum(quantise_model.quantise(value, exponent, 2) for value in pair))
            floats.append(quantise_model.dequantise(sums[-1], exponent, 2))
    return np.array(sums, np.int32), np.array(floats, np.float32)


def expected_sums(round):
    return expected(round)[0]


def expected_floats(round):
    return expected(round)[1]


def test_two_agents_run_float_rounds_report_them_and_save_the_sums(start, tmp_path):
    agents = start()
    for rank, agent in enumerate(agents):
        ready = agent.event()
        assert ready.pop("t_ns") > 0
        assert ready == {"event": "ready", "job": 2, "name": f"h{rank + 1}", "rank": rank}
    for round in (0, 1, 5):
        for agent in agents:
            agent.send(command="round", round=round)
        for rank, agent in enumerate(agents):
            event = agent.event()
            assert (event["event"], event["rank"], event["round"]) == ("round", rank, round)
            assert 0 < event["start_ns"] < event["end_ns"] and event["cpu_s"] > 0
            assert event["stats"].keys() >= STATS
            stats = event["stats"]
            assert stats["sent"] - stats["retransmitted"] == 313 + SLOTS
            payload = stats["bytes_sent"] - 54 * stats["sent"]
            assert payload >= 313 * 4 * LANES
            saved = arrays(tmp_path, rank, round)
            assert saved.keys() == {"result", "sums"}
            np.testing.assert_array_equal(saved["sums"], expected_sums(round))
            np.testing.assert_array_equal(saved["result"], expected_floats(round))
    for agent in agents:
        agent.send(command="stop")
        assert agent.end() == (0, "")


def test_the_result_of_integers_is_saved(start, tmp_path):
    agents = start(work=work(dtype="int32"), window=3)
    for agent in agents:
        agent.event()
        agent.send(command="round", round=0)
    inputs = [make_tensor(7, 2, rank, 0, ELEMENTS, np.int32) for rank in range(2)]
    for rank, agent in enumerate(agents):
        assert agent.event()["event"] == "round"
        saved = arrays(tmp_path, rank, 0)
        assert saved.keys() == {"result"}
        np.testing.assert_array_equal(saved["result"], inputs[0] + inputs[1])


OWN = """
import numpy as np
from agglab.hosts import AllReducer

class Returns{what}(AllReducer):
    def all_reduce(self, array, out=None, sums=None):
        total = super().all_reduce(array, out, sums)
        return {value}
"""


@pytest.mark.long(but=["Another-total * 2-saved0"])
@pytest.mark.parametrize(
    ("what", "value", "saved"),
    [
        ("Another", "total * 2", {"result", "sums", "out"}),
        ("Itself", "total", {"result", "sums"}),
        ("Nothing", "None", {"sums", "out"}),
        ("Objects", "np.array([print])", {"sums", "out"}),
        ("Records", "np.zeros(3, [('a' * 70000, 'f4')])", {"sums", "out"}),
        ("Masked", "np.ma.masked_array(total, total > 0)", {"sums", "out"}),
        ("Subclass", "(total * 2).view(np.matrix)", {"result", "sums", "out"}),
    ],
)
def test_what_a_worker_returns_is_saved_and_not_what_the_agent_takes_for_it(
    start, tmp_path, what, value, saved
):
    (tmp_path / "own.py").write_text(OWN.format(what=what, value=value))
    agents = start(worker=f"{tmp_path}/own.py:Returns{what}")
    for agent in agents:
        assert agent.event()["event"] == "ready"
        agent.send(command="round", round=0)
    for rank, agent in enumerate(agents):
        assert agent.event()["event"] == "round"
        found = arrays(tmp_path, rank, 0)
        assert found.keys() == saved
        right = expected_floats(0)
        if "out" in saved:
            np.testing.assert_array_equal(found["out"], right)
        if "result" in saved:
            twice = right * (2 if "out" in saved else 1)
            np.testing.assert_array_equal(found["result"].reshape(-1), twice)


def test_a_result_of_bfloat16_is_saved(tmp_path):
    result = narrowed(np.float32([0.1, -2.0]))
    program._put({"result": result}, tmp_path / "round")
    saved = np.load(tmp_path / "round" / "result.npy")
    assert saved.dtype == BFLOAT16 and saved.tobytes() == result.tobytes()


def test_a_closed_control_socket_ends_an_idle_agent_and_one_in_a_round(start):
    first, second = start()
    first.event()
    second.event()
    first.socket.shutdown(socket.SHUT_RDWR)
    assert first.end() == (0, "")
    second.send(command="round", round=0)
    second.socket.shutdown(socket.SHUT_RDWR)
    assert second.end() == (0, "")


def test_stop_ends_a_round_that_cannot_finish(start):
    (agent,) = start(ranks=(0,))
    agent.event()
    agent.send(command="round", round=0)
    agent.send(command="stop")
    assert agent.end() == (0, "")


def test_progress_and_then_failure_are_events_and_exit_code_1(start):
    (agent,) = start(ranks=(1,), give_up_s=0.5)
    agent.event()
    agent.send(command="round", round=3)
    progress = json.loads(agent._lines.readline())
    assert progress.pop("t_ns") > 0
    assert progress == {
        "event": "progress",
        "job": 2,
        "name": "h2",
        "rank": 1,
        "round": 3,
        "chunks": 0,
        "of": 313,
        "retransmitted": progress["retransmitted"],
    }
    failed = agent.event()
    assert (failed["event"], failed["rank"], failed["round"]) == ("failed", 1, 3)
    assert failed["error"].startswith("no result for chunks 0-15 (slots 0-15) of job 2 after 0.5 s")
    assert failed["missing"] == [[0, 15]]
    assert [entry[:3] for entry in failed["waiting"]] == [[slot, slot, 1] for slot in range(16)]
    again = sum(entry[3] for entry in failed["waiting"])
    assert again == failed["stats"]["retransmitted"]
    agent.send(command="stop")
    assert agent.end() == (1, "")


def test_a_round_is_aborted_and_runs_again_with_the_members_that_are_left(start, tmp_path):
    """Three were meant to be; the switch knows two. The tensors stay those of ranks 0 and 2."""
    start(ranks=(0,), workers=3, work=work(dtype="int32"))
    first, second = agents = start(ranks=(1,), workers=3, rank=2, work=work(dtype="int32"))
    for agent in agents:
        agent.event()
    first.send(command="round", round=1)
    first.send(command="abort")
    aborted = first.event()
    assert (aborted["event"], aborted["rank"], aborted["round"]) == ("aborted", 0, 1)
    assert aborted["waiting"][1][:3] == [1, 1, 1]
    second.send(command="abort")
    assert second.event()["waiting"] == []
    settings = {"first_tag": (1 << 20) + 1, "slots": SLOTS, "window": 5}
    again = {"members": [0, 2], "settings": settings}
    for agent in agents:
        agent.send(command="configure", **again)
        assert agent.event()["event"] == "ready"
        agent.send(command="round", round=1, marks=[313, 100])
    for agent in agents:
        chunks = [agent.event(), agent.event()]
        assert [(e["event"], e["chunk"], e["round"]) for e in chunks] == [
            ("chunk", 100, 1),
            ("chunk", 313, 1),
        ]
        assert agent.event()["event"] == "round"
    inputs = [make_tensor(7, 2, rank, 1, ELEMENTS, np.int32) for rank in (0, 2)]
    for rank in (0, 2):
        received = arrays(tmp_path, rank, 1)["result"]
        assert np.array_equal(received, inputs[0] + inputs[1])


def test_a_slow_agent_is_slow_from_the_command_on(start):
    agents = start(work=work(320, "int32"), window=1)
    for agent in agents:
        agent.event()
    agents[0].send(command="slow", delay_s=0.02)
    for agent in agents:
        agent.send(command="round", round=0)
    report = agents[0].event()
    assert report["end_ns"] - report["start_ns"] >= 10 * 0.02e9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 0}, "lanes is 0; it must be 1 to 16373"),
        ({"rank": 2}, "rank is 2; it must be 0 to 1"),
        ({"window": 99}, "window is 99; it must be 1 to 16"),
        ({"bind": ["192.0.2.1", 9]}, "cannot use 192.0.2.1:9 to reach"),
    ],
)
def test_what_cannot_work_is_a_failed_event(start, changes, message):
    (agent,) = start(ranks=(0,), **changes)
    failed = agent.event()
    assert failed["event"] == "failed" and failed["error"].startswith(message)
    assert agent.end() == (1, "")


def run_agent(*arguments):
    command = [sys.executable, "-m", "agglab.hosts.agent", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "not an object"),
        ('{"name": "h1", "extra": 1}', "missing or unknown keys: bind, control, extra,"),
    ],
)
def test_an_unusable_configuration_is_one_line_and_exit_code_2(tmp_path, text, message):
    file = tmp_path / "agent.json"
    file.write_text(text)
    code, errors = run_agent(str(file))
    assert code == 2 and message in errors and errors.count("\n") == 1


def test_no_configuration_is_one_line_and_exit_code_2(tmp_path):
    assert run_agent() == (2, "usage: python -m agglab.hosts.agent CONFIG.json\n")
    code, errors = run_agent(str(tmp_path / "none.json"))
    assert code == 2 and "No such file" in errors and errors.count("\n") == 1
