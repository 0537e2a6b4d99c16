"""The command line: exit codes and lines, with the network replaced where one would be needed."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agglab.testbed.base.errors import CompileError
from agglab.testbed.base.paths import P4_FOLDER
from agglab.testbed.base.single_threaded_numpy import THREADS
from agglab.testbed.cli import main
from agglab.testbed.experiment import interleaved_runs, scenario_run
from agglab.testbed.real import MachineLacks, NodeFailed
from agglab.testbed.run.programs import prepare
from agglab.testbed.run.programs.program import Program
from agglab.testbed.scenario import names
from agglab.testbed.schema import shipped_scenarios


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Every step of a run that needs a machine; a test replaces the one it is about."""
    description = tmp_path / "p.json"
    kinds = ("actions", "register_arrays", "counter_arrays")
    description.write_text(json.dumps({kind: [] for kind in kinds}))
    program = Program(Path("p.p4"), description, Path("p.txtpb"), "0", "1")
    steps = {
        "lacks": lambda *_: [],
        "compile_program": lambda *a: program,
        "check_fits": lambda *a: None,
        "check_registers": lambda *a: None,
        "isolated": lambda body: body(tmp_path / "scratch"),
        "turns": lambda self: (_ for _ in ()).throw(AssertionError("a bug")),
    }

    def put(**replaced) -> None:
        steps.update(replaced)
        for name in ("compile_program", "check_fits", "check_registers"):
            monkeypatch.setattr(prepare, name, steps[name])
        for name in ("lacks", "isolated"):
            monkeypatch.setattr(f"agglab.testbed.real.{name}", steps[name])
        monkeypatch.setattr(interleaved_runs.Experiment, "turns", steps["turns"])

    put()
    return put


def raising(error: BaseException):
    def step(*_: object) -> None:
        raise error

    return step


def metrics(results: Path, name: str = "quickstart") -> dict:
    return json.loads((results / name / "latest/metrics.json").read_text())


def test_list_has_one_line_each(capsys) -> None:
    assert main.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == names()
    assert all(len(line.split()) > 3 for line in lines)


def test_check_accepts_names_and_paths(capsys, tmp_path: Path) -> None:
    assert main.main(["check", "scaling"]) == 0
    assert capsys.readouterr().out.endswith("scaling.yaml: valid, 3 runs\n")
    (tmp_path / "mine.yaml").write_text("seed: 3")
    assert main.main(["check", str(tmp_path / "mine.yaml"), "--set", "links.loss=1%"]) == 0


def test_check_compiles_the_program_of_every_point(capsys, tmp_path: Path) -> None:
    """What only few lanes show is found at the sweep's last point, and said as a run says it."""
    (tmp_path / "few.p4").write_text(
        "#if LANES < 8\ncontrol\n#else\n#include <switchml.p4>\n#endif\n"
    )
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "backend: virtual\nswitch: {program: few.p4}\nsweep: {switch.lanes: [8, 16, 4]}\n"
        "workload: {elements: 10}"
    )
    assert main.main(["check", str(file)]) == 2
    checked = capsys.readouterr()
    assert checked.out == ""
    assert "few.p4:2:" in checked.err and "error:" in checked.err
    assert main.main(["run", str(file), "--results", str(tmp_path / "r")]) == 2
    assert capsys.readouterr().err == checked.err
    assert not (tmp_path / "r").exists()
    assert main.main(["check", str(file), "--set", "sweep={switch.lanes: [8, 16]}"]) == 0


def test_check_finds_entries_that_do_not_fit(capsys, tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text('{"table_entries": [{"table": "rutes"}]}')
    file = tmp_path / "own.yaml"
    file.write_text("switch: {entries: own.json, lanes: 8}")
    assert main.main(["check", str(file)]) == 2
    assert "own.json: table_entries[0].table: 'rutes' does not exist" in capsys.readouterr().err


def test_check_answers_programs_in_json(capsys, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("sede: 3\nlinks: {rate: 1}")
    assert main.main(["check", "--json", str(file)]) == 2
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert said.err == "" and answer["valid"] is False
    assert [(p["path"], p["line"]) for p in answer["problems"]] == [("sede", 1), ("links.rate", 2)]
    file.write_text("switch: {lanes: 8}")
    assert main.main(["check", "--json", str(file)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer == {"valid": True, "runs": 1, "problems": [], "notes": []}


def test_check_runs_nothing_of_the_users(capsys, tmp_path: Path) -> None:
    """A worker's module is read, and run only when a run begins."""
    (tmp_path / "mine.py").write_text(
        "import pathlib\nfrom hosts import AllReducer\n"
        "pathlib.Path(__file__).with_name('was-run').touch()\n"
        "class Mine(AllReducer):\n    def all_reduce(self, *given): ...\n"
        "class Other: ...\n"
    )
    file = tmp_path / "s.yaml"
    virtual = "backend: virtual\nswitch: {lanes: 8}\nworkload: {worker: 'mine:Mine'}"
    for text, code, said in (
        ("switch: {lanes: 8}\nworkload: {worker: 'mine:Mine'}", 0, ""),
        ("workload: {worker: 'mine:Min'}", 2, "no class Min that is a subclass"),
        ("workload: {worker: 'mine:Other'}", 2, "no class Other that is a subclass"),
        (virtual, 2, "in virtual time only its `combine`"),
    ):
        file.write_text(text)
        assert main.main(["check", str(file)]) == code
        assert said in capsys.readouterr().err
        assert not (tmp_path / "was-run").exists()
    (tmp_path / "mine.py").write_text(
        "from agglab.hosts import AllReducer\nclass Mine(AllReducer): ...\n"
        "raise OSError('at once')\n"
    )
    file.write_text(virtual)
    assert main.main(["check", str(file)]) == 0
    assert main.main(["run", str(file), "--results", str(tmp_path / "r")]) == 2
    assert "workload.worker" in (said := capsys.readouterr().err) and "OSError: at once" in said
    assert not (tmp_path / "r").exists()


def test_a_run_answers_programs_in_json(capsys, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        "backend: virtual\ntopology: {workers: 2}\nswitch: {lanes: 8, slots: 8}\n"
        "workload: {elements: 20, rounds: 1}"
    )
    assert main.main(["run", "--json", str(file), "--results", str(tmp_path / "r")]) == 0
    said = capsys.readouterr()
    kept = (tmp_path / "r/s/latest/metrics.json").read_text()
    assert said.out == kept and json.loads(kept)["exact"] is True
    assert "PASSED  s" in said.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["check", "quikstart"], "'quikstart': unknown scenario, did you mean 'quickstart'?"),
        (["run", "quikstart"], "'quikstart': unknown scenario, did you mean 'quickstart'?"),
        (
            ["check", "scenarios/quikstart.yaml"],
            "'scenarios/quikstart.yaml': unknown scenario, did",
        ),
        (["run", "no/such.yaml"], "no/such.yaml: cannot read the file: No such file or directory"),
        (
            ["check", "err/quickstrat.yaml"],
            "err/quickstrat.yaml: cannot read the file: No such file or "
            "directory, did you mean 'quickstart'?",
        ),
        (["run", "quickstart", "--set", "seed=x"], "--set 'seed=x': seed: 'x' is not a whole"),
        (
            ["report", "no/such"],
            "no/such/metrics.json: No such file or directory: this is not the folder",
        ),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(capsys, words: list[str], line: str) -> None:
    assert main.main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(line)
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("words", [[], ["frobnicate"], ["run"], ["run", "a", "--speed"]])
def test_a_wrong_command_line_is_exit_code_2(capsys, words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(words)
    assert ended.value.code == 2
    assert "usage: agglab" in capsys.readouterr().err


def test_an_unknown_command_names_the_nearest(capsys) -> None:
    with pytest.raises(SystemExit):
        main.main(["rnu"])
    assert (
        "unknown command 'rnu', did you mean 'run'?; allowed: list, check"
        in capsys.readouterr().err
    )


def test_an_export_of_a_program_with_errors_is_exit_code_2(capsys, tmp_path: Path) -> None:
    (tmp_path / "bad.p4").write_text("control\n")
    words = ["--to", "tutorial", "--out", str(tmp_path / "out")]
    assert (
        main.main(["export", "quickstart", "--set", f"switch.program={tmp_path}/bad.p4", *words])
        == 2
    )
    assert capsys.readouterr().err.startswith(f"{tmp_path}/bad.p4:")


def test_filling_a_switch_that_is_not_there_ends(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("agglab.testbed.cli.fill.ANSWER_S", 0.05)
    out = tmp_path / "out"
    assert main.main(["export", "quickstart", "--to", "tutorial", "--out", str(out)]) == 0
    assert main.main(["fill", f"unix:{tmp_path}/nobody", "1", f"{out}/s1-runtime.json"]) == 2
    said = f"no switch answers P4Runtime at unix:{tmp_path}/nobody\n"
    assert capsys.readouterr().err == said
    (tmp_path / "empty.json").write_text("{}")
    assert main.main(["fill", "unix:x", "1", f"{tmp_path}/empty.json"]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path}/empty.json: p4info: is missing; allowed: the path of a file\n"
    )


def test_what_the_machine_lacks_is_exit_code_3(capsys, fake, tmp_path: Path) -> None:
    fake(lacks=lambda *_: [MachineLacks("root", "run as root, or with sudo")])
    assert main.main(["run", "quickstart", "--results", str(tmp_path / "r")]) == 3
    assert capsys.readouterr().err == "this machine lacks root: run as root, or with sudo\n"
    assert not (tmp_path / "r").exists()


def test_virtual_time_needs_a_c_compiler(capsys, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ["run", "quickstart", "--set", "backend=virtual", "--results", str(tmp_path / "r")]
    assert main.main(words) == 3
    said = "this machine lacks the program cc: run `make setup`, or apt-get install gcc libc6-dev\n"
    assert capsys.readouterr().err == said
    assert not (tmp_path / "r").exists()


def test_too_little_memory_is_exit_code_3(capsys, fake, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scenario_run, "memory_available_bytes", lambda: 2**20)
    assert main.main(["run", "quickstart", "--results", str(tmp_path / "r")]) == 3
    line = r"this machine lacks memory: the run needs 0\.1 GiB, and 0\.0 GiB are free: use fewer"
    assert re.match(line, capsys.readouterr().err)
    assert not (tmp_path / "r").exists()


def test_a_program_with_errors_is_exit_code_2(capsys, fake, tmp_path: Path) -> None:
    fake(compile_program=raising(CompileError("x.p4:3:5: error: unknown type")))
    assert main.main(["run", "quickstart", "--results", str(tmp_path / "r")]) == 2
    assert capsys.readouterr().err == "x.p4:3:5: error: unknown type\n"
    assert not (tmp_path / "r").exists()


def test_results_that_cannot_be_written_are_exit_code_2(capsys, fake, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert main.main(["run", "quickstart", "--results", str(tmp_path / "file")]) == 2
    assert re.match(r"cannot write results: .*/file.*: Not a directory\n", capsys.readouterr().err)


def test_a_full_disk_is_one_line_and_no_bug(capsys, fake, tmp_path: Path) -> None:
    fake(turns=raising(OSError(errno.ENOSPC, "No space left on device")))
    assert main.main(["run", "quickstart", "--results", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert re.fullmatch(r"cannot write /\S+: No space left on device\n", shown.err)
    assert "FAILED  quickstart" in shown.out
    assert "No space left" in metrics(tmp_path)["reason"]
    assert not (tmp_path / "quickstart/latest/logs/testbed.log").exists()


def test_a_report_that_finds_no_room_leaves_the_verdict(
    capsys, fake, monkeypatch, tmp_path: Path
) -> None:
    fake(turns=raising(NodeFailed("s1", "the switch ended", ["x"], tmp_path / "none")))
    full = OSError(errno.ENOSPC, "No space left on device", "/r/report.html")
    monkeypatch.setattr(scenario_run.report, "write", raising(full))
    assert main.main(["run", "quickstart", "--results", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert shown.err.endswith("cannot write /r/report.html: No space left on device\n")
    assert "s1: the switch ended" in shown.out


@pytest.mark.long(but=[">&-"])
@pytest.mark.parametrize("streams", [">&-", ">&- 2>&- <&-", ">/dev/full 2>/dev/full", "| true"])
def test_a_run_needs_nobody_who_listens(tmp_path: Path, streams: str) -> None:
    words = (
        f"run quickstart --set backend=virtual --set workload.elements=9000 --results {tmp_path}"
    )
    shell = f"{{ {sys.executable} -m agglab.testbed {words}; echo $? >{tmp_path}/code; }} {streams}"
    subprocess.run(["sh", "-c", shell], check=False)
    assert (tmp_path / "code").read_text() == "0\n"
    assert metrics(tmp_path)["ok"] is True


@pytest.mark.parametrize(("streams", "code"), [(">&-", 0), (">/dev/full", 1), ("| true", 1)])
def test_output_that_nobody_takes_is_no_bug(tmp_path: Path, streams: str, code: int) -> None:
    shell = f"{{ {sys.executable} -m agglab.testbed list; echo $? >{tmp_path}/code; }} {streams}"
    done = subprocess.run(["sh", "-c", shell], stderr=subprocess.PIPE, text=True)
    assert (tmp_path / "code").read_text() == f"{code}\n"
    assert done.stderr == (
        "cannot write the output: No space left on device\n" * (streams[-4:] == "full")
    )


def test_a_switch_that_dies_is_exit_code_1_and_the_reason_is_kept(
    capsys, fake, tmp_path: Path
) -> None:
    log = tmp_path / "switch.log"
    log.write_text("first\nlast words\n")
    fake(
        turns=raising(
            NodeFailed("s1", "the switch ended", ["python", "-m", "p4native.switch"], log)
        )
    )
    assert main.main(["run", "quickstart", "--results", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "command: python -m p4native.switch" in shown.err
    assert "last words" in shown.err
    assert "FAILED  quickstart" in shown.out
    assert metrics(tmp_path) == {"ok": False, "reason": "s1: the switch ended"}
    assert (tmp_path / "quickstart/latest/report.html").is_file()


def test_a_bug_of_ours_is_one_line_and_a_log(capsys, fake, tmp_path: Path) -> None:
    assert main.main(["run", "quickstart", "--results", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    log = Path(re.search(r"the traceback is in (\S+)", shown)[1])
    assert "Traceback" in log.read_text()
    assert metrics(tmp_path)["ok"] is False


def test_a_bug_outside_a_run_is_one_line_and_a_log(capsys, monkeypatch) -> None:
    monkeypatch.setattr(shipped_scenarios, "names", raising(RuntimeError("oops")))
    assert main.main(["list"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("internal error: RuntimeError('oops'); the traceback is in ")
    log = Path(shown.split()[-1])
    assert "Traceback" in log.read_text()
    log.unlink()


def test_an_interrupt_is_exit_code_130_and_the_folder_says_so(capsys, fake, tmp_path: Path) -> None:
    fake(turns=raising(KeyboardInterrupt()))
    assert main.main(["run", "quickstart", "--results", str(tmp_path)]) == 130
    assert metrics(tmp_path) == {"ok": False, "reason": "interrupted"}
    assert "Traceback" not in capsys.readouterr().err


def test_a_run_that_was_killed_is_told_from_one_that_finished(fake, tmp_path: Path) -> None:
    fake(isolated=lambda body: 128 + 9)
    assert main.main(["run", "quickstart", "--results", str(tmp_path)]) == 137
    assert metrics(tmp_path) == {"ok": False, "reason": "killed by signal 9"}


def test_a_sweep_that_broke_off_is_not_ok(fake, tmp_path: Path) -> None:
    fake(turns=raising(KeyboardInterrupt()))
    assert main.main(["run", "scaling", "--results", str(tmp_path)]) == 130
    found = metrics(tmp_path, "scaling")
    assert (found["ok"], found["exact"], len(found["points"])) == (False, None, 3)
    assert "interrupted" in found["reason"]
    assert "the run was not begun" in found["reason"]


def test_a_fault_that_meets_two_jobs_is_told_once(capsys, tmp_path: Path) -> None:
    scenario = tmp_path / "two.yaml"
    scenario.write_text(
        "backend: virtual\n"
        "jobs: [{name: a}, {name: b}]\n"
        "workload: {elements: 50000, give_up: 200ms}\n"
        "faults: [{kind: worker_crash, worker: h1, at: 5ms}, "
        "{kind: worker_crash, worker: h2, at: 10min}]\n"
    )
    assert main.main(["run", str(scenario), "--results", str(tmp_path)]) == 1
    for line in capsys.readouterr().err.splitlines():
        assert line.count("worker_crash h1") == 1, line
    found = metrics(tmp_path, "two")["faults"]
    assert found["never_begun_faults"] == ["worker_crash h2 at 600 s"]


def test_a_name_that_is_no_utf_8_is_no_obstacle(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    scenario = folder / "s.yaml"
    scenario.write_text("backend: virtual\nworkload: {elements: 3000}\n")
    shutil.copy(P4_FOLDER / "switchml.p4", folder)
    words = ["run", str(scenario), "--set", "switch.program=switchml.p4", "--results"]
    assert main.main([*words, str(tmp_path / "r")]) == 0
    assert (tmp_path / "r/s/latest/report.html").is_file()


@pytest.mark.parametrize("given", [None, "2"])
def test_the_command_line_starts_no_threads_and_leaves_those_of_others_alone(
    given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that it starts inherit the environment."""
    monkeypatch.delenv(THREADS, raising=False)
    if given:
        monkeypatch.setenv(THREADS, given)
    code = f"""
import os, sys
from agglab.testbed.__main__ import run
sys.argv = ["agglab", "list"]
assert run() == 0
print(os.environ.get({THREADS!r}), len(os.listdir("/proc/self/task")) == 1)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kept, alone = done.stdout.splitlines()[-1].split()
    assert kept == str(given)
    assert given or alone == "True"
