"""What the commands of the prompt do in virtual time, and what they refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shell_asked import Asked, opened
from shell_terminal import ROOT, SCENARIO

from agglab.testbed.base.exit_codes import FAILED, INVALID
from agglab.testbed.cli.shell.refused import Refused
from p4native.switch import Detail, Program, native_library

Ask = Callable[..., Asked]
PAGE = (ROOT / "docs/shell.md").read_text()
SESSION = re.compile(r"^```session\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\./agglab shell (labs/\S+)(.*)$", re.MULTILINE)
BITMAP = ROOT / "labs/03-bitmap/solution.p4"
COURSE = f"""
name: course
system: {ROOT}/labs/course/course.py:Course
backend: virtual
topology: {{workers: 2}}
links: {{rate: 10mbit}}
switch: {{program: own.p4, slots: 4}}
workload: {{elements: 16, dtype: int32, rounds: 2, give_up: 1s}}
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A prompt at which nothing has been done."""
    path = tmp_path_factory.mktemp("fresh") / "prompt.yaml"
    path.write_text(SCENARIO)
    with opened(path) as asked:
        yield asked


def shell(*words: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agglab.testbed", "shell", *words]
    return subprocess.run(command, input=lines, capture_output=True, text=True, cwd=ROOT)


def test_the_session_in_the_documents_is_so() -> None:
    text = "".join(SESSION.findall(PAGE))
    lines = [line.removeprefix("agglab> ") for line in text.splitlines() if "agglab> " in line]
    (scenario, settings), *_ = COMMAND.findall(PAGE)
    done = shell(scenario, *settings.split(), lines="\n".join(lines))
    assert (done.stdout, done.stderr, done.returncode) == (text, "", 0)


def test_a_packet_changes_what_the_next_ones_meet(ask: Ask) -> None:
    asked = ask()
    asked("step 3")
    assert "[h1 h2 h3] complete" in asked("slots")
    asked("step")
    assert "slot 1 set 1  tag 1  [h1 -- --] waits for h2, h3" in asked("slots")


def test_a_sum_is_that_of_the_packets(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "own.p4").write_text(BITMAP.read_text())
    asked = ask(COURSE)
    shown = asked("step 2")
    numbers = [int(number) for number in re.findall(r"v0 (\d+)", shown)]
    assert f"complete  sum {sum(numbers) % 2**32} " in asked("slots")


def test_each_job_has_workers_of_its_own_in_its_slots(ask: Ask) -> None:
    jobs = "jobs: [{name: a, workers: [h1, h2]}, {name: b, workers: [h2, h3]}]\n"
    asked = ask(f"{SCENARIO}{jobs}".replace("slots: 2", "slots: 4"))
    asked("step 20")
    drawn = set(re.findall(r"slot (\d) .*\[(.. ..)\]", asked("slots")))
    names = {int(slot): bits.replace("--", "") for slot, bits in drawn}
    assert all("h3" not in bits for slot, bits in names.items() if slot < 2)
    assert all("h1" not in bits for slot, bits in names.items() if slot >= 2)
    assert {"h1 h2", "h2 h3"} <= {bits for _, bits in drawn}


def test_a_link_that_is_down_loses_packets(ask: Ask) -> None:
    asked = ask()
    asked("link h1-s1 down")
    assert "h1->s1: " in asked("until 1ms")
    assert "[-- h2 h3] waits for h1" in asked("slots")
    asked("link h1-s1 up")
    assert asked("round").endswith("round 0 of job1: right")


def test_a_paused_worker_is_waited_for(ask: Ask) -> None:
    asked = ask()
    asked("step 4", "pause h2", "until 1ms")
    assert "waits for h2" in asked("slots")
    assert asked("pause h2 off", "round").endswith("round 0 of job1: right")


def test_a_fault_of_one_direction_is_named_so(ask: Ask) -> None:
    asked = ask()
    assert asked("fault loss s1->h2 99%", "fault") == (
        "0.000 ms  fault 0, loss of s1->h2, begins\nfault 0: loss of s1->h2"
    )
    assert "fault 0, loss of s1->h2, ends" in asked("fault loss s1->h2 50%")
    assert asked("fault") == "fault 1: loss of s1->h2"


def test_a_fault_may_end_by_itself(ask: Ask) -> None:
    asked = ask()
    asked("fault rate h1-s1 8kbit for=2ms")
    assert "fault 0, rate of h1-s1, ends" in asked("until 3ms")


def test_back_leads_to_the_same_state(ask: Ask) -> None:
    asked = ask()
    first = asked("fault loss h*-s1 30%", "step 9", "slots", "counters")
    asked("link h2-s1 down", "round")
    asked("back 1")
    assert (
        asked("slots", "counters") == first.partition("s1 slot")[1] + first.partition("s1 slot")[2]
    )
    assert asked("back all", "slots", "fault") == (
        "0.000 ms  nothing has been done\ns1: no slot has been used (2 slots)\n"
        "no fault was begun here that has not ended"
    )


def test_reload_takes_the_program_as_it_is_now(ask: Ask, tmp_path: Path) -> None:
    program = tmp_path / "own.p4"
    program.write_text(BITMAP.read_text())
    asked = ask(COURSE)
    asked("step")
    text = program.read_text()
    assert "seen.write(meta.cell, after);" in text
    program.write_text(text.replace("seen.write(meta.cell, after);", ""))
    asked("reload")
    assert "[" not in asked("slots")
    asked("step")
    assert "[" not in asked("slots"), "the new program writes no bits"
    assert asked("back all", "step", "slots").endswith("s1: no slot has been used (4 slots)")


def test_who_waits_at_the_prompt_gets_a_program_that_compiles_quickly(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def library(program: Program, detail: Detail, quick: bool) -> Path:
        compiled.append(quick)
        return native_library(program, detail, quick)

    monkeypatch.setattr("agglab.testbed.virtual.switches.native_library", library)
    asked = ask()
    asked("step", "reload", "back all")
    assert compiled == [True] * 3, "the first one, the reloaded one, and that of `back`"


def test_a_program_with_an_error_is_not_loaded(ask: Ask, tmp_path: Path) -> None:
    program = tmp_path / "own.p4"
    program.write_text(BITMAP.read_text())
    asked = ask(COURSE)
    asked("step")
    program.write_text("wrong")
    with pytest.raises(Refused, match=r"own\.p4"):
        asked("reload")
    assert "[h1 --] waits for h2" in asked("slots")


def test_the_trace_has_the_terms_of_conditions(ask: Ask) -> None:
    asked = ask()
    assert "aggregation.version != 1: 1 != 1, false" in asked("trace on", "step")
    assert "version != 1" not in asked("trace off", "step")


def test_the_prompt_opens_where_the_scenario_pauses(ask: Ask) -> None:
    asked = ask(f"{SCENARIO}pause_at: {{round: 1, chunk: 2}}\n")
    here = asked("slots")
    assert "tag 7" in here, "the third chunk of the second round, after an opening"
    assert asked("round").endswith("round 1 of job1: right")
    assert asked("back all", "slots").endswith(here)


def test_a_pause_that_never_comes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "late.yaml").write_text(f"{SCENARIO}pause_at: {{round: 4}}\n")
    done = shell(str(tmp_path / "late.yaml"))
    assert (done.returncode, done.stderr) == (
        INVALID,
        f"{tmp_path}/late.yaml:7: pause_at.round: is too large: job1 has only 4 rounds; "
        "allowed: 0 to 3\n",
    )


def test_all_rounds_end(ask: Ask) -> None:
    asked = ask()
    for number in range(4):
        assert f"round {number} of job1: right" in asked("round")
    with pytest.raises(Refused, match="all jobs have ended"):
        asked("step")
    assert "complete" in asked("slots")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("slot", "no such command 'slot', did you mean 'slots'?; `help` lists the commands"),
        ("step x", "'x' is not a whole number; allowed: a whole number from 1 to 1000"),
        ("step 0", "'0' is too small; allowed: a whole number from 1 to 1000"),
        ("until 5", "'5' has no unit; allowed: a time from 0s to 60min in ns, us, ms, s, min"),
        ("until", "write `until TIME | NODE | h1->s1`"),
        ("registers contributers[0]", "did you mean 'contributors'?"),
        ("registers contributors[4]", "contributors has the cells 0 to 3, not contributors[4]"),
        ("registers contributors[3..1]", "has the cells 0 to 3, not contributors[3..1]"),
        ("registers [", "'[' is no register: write NAME, NAME[3] or NAME[0..7]"),
        ("table s1 member", "s1 has no entries of a table 'member', did you mean 'members'?"),
        ("counters nothing", "s1 has no counter 'nothing'; allowed: "),
        ("fault los h1-s1 5%", "no such fault 'los', did you mean 'loss'?"),
        ("fault loss h1-s1", "loss needs probability: write `fault loss LINK PROBABILITY`"),
        ("fault loss h1-s1 5", "probability: '5' would be 500 %, did you mean '5%'?"),
        ("fault loss h1-s1 5% 6%", "'6%' is too much: write `fault loss LINK PROBABILITY`"),
        ("fault loss h1-s1 5% at=1s", "loss has no key 'at'; allowed: link, probability, for"),
        (
            "fault loss h9-s1 5%",
            "'h9-s1' matches no link, did you mean 'h3-s1'?; allowed: h1-s1, h2-s1, h3-s1",
        ),
        ("fault attack h1 9", "'h1' matches no host"),
        ("fault off 3", "no fault '3' was begun here; allowed: none"),
        ("link h1-s2 down", "no such link 'h1-s2', did you mean 'h1-s1'?"),
        ("link h1-s1 up", "h1-s1 is up already"),
        ("link h1-s1 off", "'off' is neither `down` nor `up`"),
        ("pause h9", "'h9' matches no worker"),
        ("pause h1 off", "h1 is not paused"),
        ("wireshark h1-eth0", "only the ports of switches are captured"),
        ("wireshark s1-eth9", "no such interface 's1-eth9', did you mean 's1-eth3'?"),
        ("xterm h1", "only on real links, where hosts run programs: use --set backend=mininet"),
        ("pingall", "only on real links, where hosts run programs: use --set backend=mininet"),
        ("h1 ping h2", "only on real links, where hosts run programs"),
        ("trace", "write `trace on` or `trace off`"),
        ("back 2", "only 0 commands have let time pass: write `back all`"),
        ("back 0", "write `back`, `back N` or `back all`"),
        ("help stepp", "no such command 'stepp', did you mean 'step'?"),
        ("source nothing.txt", "nothing.txt cannot be read"),
        ("step 'x", "cannot be read: No closing quotation"),
    ],
)
def test_what_is_refused(fresh: Asked, line: str, text: str) -> None:
    with pytest.raises(Refused) as refused:
        fresh(line)
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
    assert fresh.prompt.history == []


def test_4096_cells_of_a_register_are_read_at_a_time(ask: Ask) -> None:
    asked = ask(SCENARIO.replace("slots: 2", "slots: 2049"))
    printed = asked("registers contributors[1..4096]")
    assert printed.startswith("s1 contributors[1..4096]: ") and len(printed.split()) == 2 + 4096
    with pytest.raises(Refused, match="at most 4096 cells at a time"):
        asked("registers contributors[0..4096]")


def test_a_list_of_commands_ends_at_the_first_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prompt.yaml").write_text(SCENARIO)
    (tmp_path / "list").write_text("nodes # who\nnode\nlinks\n")
    done = shell(str(tmp_path / "prompt.yaml"), "--commands", str(tmp_path / "list"))
    assert done.returncode == FAILED
    assert done.stdout.splitlines()[1:] == [
        "hosts:    h1 h2 h3",
        "switches: s1",
        "agglab> node",
        "no such command 'node', did you mean 'nodes'?; `help` lists the commands",
    ]


def test_a_sweep_has_no_prompt(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(f"{SCENARIO}sweep: {{links.loss: [0%, 1%]}}\n")
    done = shell(str(tmp_path / "sweep.yaml"))
    assert (done.returncode, done.stderr) == (
        INVALID,
        f"{tmp_path}/sweep.yaml: has 2 runs, and a shell opens one; "
        "allowed: a scenario without `sweep` and `compare`\n",
    )
