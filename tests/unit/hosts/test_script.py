"""A user's script beside an agent: what it finds, how it ends, and that nothing of it stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import until

from agglab.hosts.agreement import Agreement
from agglab.hosts.part import WORKER, Part
from agglab.hosts.script_ledger import (
    FIRST,
    INPUT,
    ONE_IN,
    RESULT,
    SUMS,
    Ledger,
    sample_name,
)
from agglab.hosts.script_process import Script, interface_of
from agglab.hosts.script_round import ScriptRound
from agglab.hosts.workloads import Torch


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.py"
    path.write_text(text)
    return path


def ended(path: Path, *arguments: str, **environment: str) -> str:
    """The error of a script that was run to its end."""
    running = Script(str(path), arguments, environment, path.parent)
    try:
        until(lambda: running.wait(1.0), "it has ended")
        return running.error()
    finally:
        running.kill()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def training_terms(present: np.ndarray | None) -> tuple[str, ...]:
    part = Part(1, WORKER, 0, 2, ("127.0.0.1", 1), None, Torch(100, "own.py"), 1.0, {})
    nothing: Any = None
    made = ScriptRound(part, Path("."), "1", nothing, 0, nothing, nothing, True, lambda: present)
    return made._terms().dtypes


def test_integers_do_not_go_through_a_system_whose_sums_may_lack_workers() -> None:
    assert training_terms(None) == ("float32", "int32")
    assert training_terms(np.zeros(0, np.uint64)) == ("float32",)


class TestScript:
    def test_finds_what_it_would_find_alone(self, tmp_path: Path) -> None:
        (tmp_path / "beside.py").write_text("NUMBER = 7\n")
        told = tmp_path / "told.json"
        path = script(
            tmp_path,
            "import json, os, sys\nimport beside\n"
            "told = [sys.argv, __name__, beside.NUMBER, os.environ['RANK']]\n"
            f"json.dump(told, open({str(told)!r}, 'w'))",
        )
        assert ended(path, "--epochs", "3", RANK="2") == ""
        assert json.loads(told.read_text()) == [[str(path), "--epochs", "3"], "__main__", 7, "2"]

    @pytest.mark.parametrize(
        "text, error",
        [
            ("import sys\nsys.exit(0)", ""),
            ("import sys\nsys.exit()", ""),
            ("import sys\nsys.exit(3)", "own.py: it called sys.exit(3)"),
            ("raise ValueError('no data\\nat all')", "own.py: ValueError: no data at all"),
            ("raise KeyboardInterrupt", "own.py: KeyboardInterrupt"),
            ("def f(:", "own.py: SyntaxError: "),
            (
                "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
                "own.py was killed by SIGKILL",
            ),
            ("import os\nos._exit(4)", "own.py ended with 4"),
            ("import os\nos._exit(0)", ""),
            ("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', ''])", ""),
            ("import sys\nsys.exit('no data')", "own.py: it called sys.exit('no data')"),
            ("import threading\nthreading.Thread(target=input, daemon=True).start()", ""),
            (
                "import threading\n"
                "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
                "raise OSError",
                "own.py: OSError",
            ),
        ],
    )
    def test_says_how_it_ended(self, tmp_path: Path, text: str, error: str) -> None:
        found = ended(script(tmp_path, text))
        assert found.startswith(error) and bool(found) == bool(error)

    def test_who_aborts_after_the_end_has_not_failed(self, tmp_path: Path) -> None:
        """As libraries do whose threads outlive the interpreter."""
        text = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGABRT)"
        assert ended(script(tmp_path, text)) == ""

    def test_kill_takes_its_children_along(self, tmp_path: Path) -> None:
        told = tmp_path / "child"
        text = (
            "import subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
            f"open({str(told)!r}, 'w').write(f'{{child.pid}}\\n')\n"
            "time.sleep(600)"
        )
        running = Script(str(script(tmp_path, text)), (), {}, tmp_path)
        try:
            until(lambda: told.exists() and told.read_text().endswith("\n"), "it runs")
            child = int(told.read_text())
            assert is_running(child)
        finally:
            running.kill()
        until(lambda: not is_running(child), "its child has ended")
        running.kill()

    def test_ends_with_its_agent(self, tmp_path: Path) -> None:
        told = tmp_path / "pid"
        path = script(
            tmp_path,
            f"import os, time\nopen({str(told)!r}, 'w').write(f'{{os.getpid()}}\\n')\n"
            "time.sleep(600)",
        )
        text = (
            "import time\nfrom pathlib import Path\n"
            "from agglab.hosts.script_process import Script\n"
            f"running = Script({str(path)!r}, (), {{}}, Path({str(tmp_path)!r}))\ntime.sleep(600)"
        )
        agent = subprocess.Popen([sys.executable, "-c", text])
        try:
            until(lambda: told.exists() and told.read_text().endswith("\n"), "it runs")
            pid = int(told.read_text())
            assert is_running(pid)
        finally:
            os.kill(agent.pid, signal.SIGKILL)
            agent.wait()
        until(lambda: not is_running(pid), "it has ended")

    def test_knows_the_interface_of_an_address(self) -> None:
        assert interface_of("127.0.0.1") == interface_of("127.0.0.9") == "lo"


def added(ledger: Ledger, count: int, elements: int = 3) -> list[int]:
    """Numbers of the reductions that the sample has, after so many more."""
    for _ in range(count):
        values = np.ones(elements, np.float32) if ledger.samples_next else None
        ledger.add(values, np.full(elements, 4, np.float32), np.ones(elements, np.int32), 5, 9)
    names = (name.partition("-") for name in ledger.sample)
    return sorted(int(number) for what, _, number in names if what == RESULT)


class TestLedger:
    def test_a_row_has_all_of_a_reduction(self) -> None:
        ledger = Ledger("1/job1/round0")
        ledger.add(None, np.array([1, 2], np.int32), None, 10, 12)
        agreement = Agreement(1, 77)
        ledger.add(None, np.array([1, 2, 3], np.float32), None, 20, 25, agreement=agreement)
        rows = ledger.rows
        assert rows["operation"].tolist() == [0, 1] and rows["tensors"].tolist() == [0, 77]
        assert rows["elements"].tolist() == [2, 3] and rows["dtype"].tolist() == [0, 1]
        assert rows["begin_ns"].tolist() == [10, 20] and rows["end_ns"].tolist() == [12, 25]
        assert not np.array_equal(rows["digest"][0], rows["digest"][1])
        assert ledger.sample == {}

    def test_equal_results_have_equal_hashes(self) -> None:
        ledger = Ledger("")
        for zero in (0.0, 0.0, -0.0):
            ledger.add(None, np.array([zero], np.float32), None, 0, 0)
        a, b, c = (row.tobytes() for row in ledger.rows["digest"])
        assert a == b != c

    def test_the_sample_is_the_same_at_all_ranks(self) -> None:
        first, other = added(Ledger("7/job1/round0"), 400), added(Ledger("7/job1/round0"), 400)
        assert first == other != added(Ledger("8/job1/round0"), 400)
        assert first[:FIRST] == list(range(FIRST))
        assert 400 / ONE_IN / 2 < len(first) < 400 / ONE_IN * 2

    def test_the_sample_has_copies(self) -> None:
        ledger, buffer = Ledger(""), np.array([1, 2], np.float32)
        sums = np.array([3, 4], np.int32)
        ledger.add(buffer, buffer, sums, 0, 0)
        buffer[:], sums[:] = 9, 9
        found = [ledger.sample[sample_name(what, 0)].tolist() for what in (INPUT, RESULT, SUMS)]
        assert found == [[1, 2], [1, 2], [3, 4]]

    def test_the_sample_ends_before_it_is_too_large(self, monkeypatch) -> None:
        monkeypatch.setattr("agglab.hosts.script_ledger.SAMPLE_BYTES_MAX", 5 * 12)
        assert len(added(Ledger(""), 400)) == 5
