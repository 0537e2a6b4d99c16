"""Rounds that are the run of a user's script: agents over a loopback switch, and scripts that ask
them for sums. The scripts need no PyTorch (hosts/training/client.py)."""

import json
import os
import signal

import numpy as np
import pytest
from agents import SLOTS, agents, arrays
from waiting import until

from agglab.hosts.script_ledger import INPUT, REDUCTION, RESULT, SUMS, sample_name

ELEMENTS = 500
PREPARE = """
import os, sys, time
from threading import Event
import numpy as np
from agglab.hosts.training import report
from agglab.hosts.training.client import Job, Piece, connect

rank = int(os.environ["RANK"])
client = connect()

def total(values):
    out, ended, errors = np.empty_like(values), Event(), []
    def end(error):
        errors.append(error)
        ended.set()
    fill, drain = (lambda slot: np.copyto(slot, values)), (lambda slot: np.copyto(out, slot))
    client.submit(Job([Piece(values.size, values.dtype.name, fill, drain)], end))
    ended.wait()
    if errors[0]:
        raise RuntimeError(errors[0])
    return out
"""
STEPS = """
for step in range(3):
    found = total(np.arange(500, dtype=np.float32) + rank)
    assert abs(found[7] - (14 + 1)) < 1e-3, found[7]
    report(step=step, loss=1 / (step + 1), epoch=step)
assert total(np.array([5, rank], np.int32)).tolist() == [10, 1]
report(parameters="abc")
"""


@pytest.fixture
def trained(tmp_path):
    """Starts two agents with a script; whoever asks for a round gets it."""
    with agents(tmp_path) as launch:

        def start(text, **changes):
            script = tmp_path / "train.py"
            script.write_text(PREPARE + text)
            own = {"kind": "torch", "elements": ELEMENTS, "script": str(script), "arguments": []}
            found = launch(work=own, hosts=["127.0.0.1", "127.0.0.2"], **changes)
            for agent in found:
                assert agent.event()["event"] == "ready"
                agent.send(command="round", round=0)
            return found

        yield start


def ends(agent):
    """The event that ends the round, without those of epochs."""
    while (event := agent.event())["event"] == "trained":
        pass
    return event


def running(name):
    """Processes whose command line has this word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if name.encode() in words:
            found.append(int(pid))
    return found


def test_a_script_gets_sums_and_what_it_did_is_left(trained, tmp_path):
    first, second = trained(STEPS)
    epochs = [first.event() for _ in range(3)]
    assert [event["event"] for event in epochs] == ["trained"] * 3
    assert [event["loss"] for event in epochs] == [1, 1 / 2, 1 / 3]
    assert [ends(agent)["event"] for agent in (first, second)] == ["round", "round"]
    left = [arrays(tmp_path, rank, 0) for rank in (0, 1)]
    rows = [each["result"].view(REDUCTION) for each in left]
    assert rows[0]["elements"].tolist() == [500, 500, 500, 2]
    assert rows[0]["dtype"].tolist() == [1, 1, 1, 0]
    assert np.array_equal(rows[0]["digest"], rows[1]["digest"])
    given = [each[sample_name(INPUT, 0)] for each in left]
    assert np.array_equal(given[1] - given[0], np.ones(500, np.float32))
    assert left[0][sample_name(RESULT, 0)][7] == pytest.approx(15)
    assert left[0][sample_name(SUMS, 0)].dtype == np.int32
    told = json.loads(left[0]["outcome"].tobytes())
    reports = [{k: v for k, v in each.items() if k != "t_ns"} for each in told["reports"]]
    assert reports[0] == {"step": 0, "loss": 1, "epoch": 0} and len(reports) == 4
    assert reports[3] == {"parameters": "abc"}
    assert not running(str(tmp_path / "train.py"))


@pytest.mark.long(but=["if rank: raise ValueError('no data')-train.py: ValueError: no data"])
@pytest.mark.parametrize(
    "text, error",
    [
        ("if rank: raise ValueError('no data')", "train.py: ValueError: no data"),
        ("if rank: os.kill(os.getpid(), 9)", "train.py was killed by SIGKILL"),
    ],
)
def test_a_script_that_fails_is_told_and_the_others_can_leave(trained, tmp_path, text, error):
    first, second = trained(f"{text}\ntotal(np.ones(9, np.float32))")
    failed = ends(second)
    assert (failed["event"], failed["error"], failed["gone"]) == ("failed", error, True)
    first.send(command="abort")
    assert ends(first)["event"] == "aborted"
    # Alone, in a session of its own: the script is started again as the only rank.
    settings = {"first_tag": 2 * SLOTS + 1}
    first.send(command="configure", members=[0], settings=settings)
    assert ends(first)["event"] == "ready"
    assert not running(str(tmp_path / "train.py"))


@pytest.mark.long(but=["-os._exit(0)"])
@pytest.mark.parametrize("ending", ["os._exit(0)", "sys.exit(0)", "client.close()"])
@pytest.mark.parametrize("steps", ["", "total(np.ones(9, np.float32))\n"])
def test_a_script_that_ends_well_has_its_round_however_it_ends(trained, tmp_path, steps, ending):
    both = trained(f"{steps}{ending}")
    assert [ends(agent)["event"] for agent in both] == ["round", "round"]
    rows = [arrays(tmp_path, rank, 0)["result"].view(REDUCTION) for rank in (0, 1)]
    assert [len(each) for each in rows] == [bool(steps)] * 2


def test_an_abort_and_a_stop_leave_nothing_of_a_script(trained, tmp_path):
    first, second = trained(
        f"open({str(tmp_path)!r} + f'/there{{rank}}', 'w').close()\n"
        "if rank: total(np.ones(9, np.float32))\n"
        "time.sleep(600)"
    )
    name = str(tmp_path / "train.py")
    until(lambda: len(list(tmp_path.glob("there*"))) == 2, "both scripts run")
    assert len(running(name)) == 2
    second.send(command="abort")
    assert ends(second)["event"] == "aborted"
    first.send(command="stop")
    assert first.end()[0] == 0
    second.send(command="stop")
    assert second.end()[0] == 0
    assert not running(name)


def test_a_reduction_that_fails_fails_the_script_and_the_round(trained, tmp_path):
    text = "try:\n    if not rank: total(np.ones(9, np.float32))\nexcept RuntimeError as error:\n"
    text += f"    open({str(tmp_path / 'said')!r}, 'w').write(str(error))\n    raise\n"
    text += "time.sleep(600)"
    first, second = trained(text, give_up_s=0.5)
    failed = ends(first)
    assert failed["event"] == "failed" and failed["missing"] and "gone" not in failed
    assert (tmp_path / "said").read_text() == failed["error"]
    os.kill(second.process.pid, signal.SIGKILL)


def test_a_killed_agent_leaves_files_only_beside_its_control_socket(trained, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    both = trained("time.sleep(600)")
    until(lambda: len(list(tmp_path.glob("t*/a"))) == 2, "both agents have files")
    until(lambda: len(running(str(tmp_path / "train.py"))) == 2, "both scripts run")
    for agent in both:
        os.kill(agent.process.pid, signal.SIGKILL)
        agent.process.wait()
    assert list(temporary.iterdir()) == []
