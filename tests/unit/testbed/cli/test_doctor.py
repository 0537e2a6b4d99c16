"""`doctor`: what it says of machines that lack something, and its exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agglab.testbed.base.errors import lacks_program
from agglab.testbed.cli import doctor, main
from agglab.testbed.real import MachineLacks
from agglab.topologies import Topology
from p4native.verification import peers

NO_ROOT = MachineLacks("root", "run it as root, or with sudo")
NO_NETEM = MachineLacks("the netem queueing discipline", "use a kernel with CONFIG_NET_SCH_NETEM")
FACTS = {"system": "Some Linux 9", "kernel": "6.1", "architecture": "aarch64"}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A machine with no tool of the peers and these lacks; returns its PATH's folder."""
    monkeypatch.setattr(doctor, "machine", lambda: FACTS)
    monkeypatch.setattr(doctor.metadata, "version", lambda package: f"{package} 9.9")
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(lacks=lambda topology: []) -> Path:
        monkeypatch.setattr(doctor, "lacks", lacks)
        return tmp_path

    return put


def delayed(topology: Topology) -> bool:
    return any(way[3].delay_us for link in topology.links for way in link.directions())


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main.main(["doctor", *words])
    return code, capsys.readouterr().out


def rows(text: str) -> dict[str, dict]:
    return {row["name"]: row for row in json.loads(text)["checks"]}


def test_a_lack_of_what_is_needed_is_exit_code_3_in_the_words_of_a_run(machine, capsys) -> None:
    machine(lambda topology: [NO_ROOT])
    code, text = answer(capsys)
    assert code == 3
    assert "lacks  root" in text
    assert "\n         what helps: run it as root, or with sudo\n" in text
    assert text.endswith("no scenario can run on real links here; missing: root\n")


def test_what_cannot_be_tried_is_not_called_missing(machine, capsys) -> None:
    machine(lambda topology: [NO_ROOT])
    row = rows(answer(capsys, "--json")[1])["link delays (netem)"]
    assert (row["found"], row["remedy"]) == ("not tried, for the reason above", "")


def test_a_lack_that_only_some_scenarios_feel_is_no_failure(machine, capsys) -> None:
    machine(lambda topology: [NO_NETEM] if delayed(topology) else [])
    code, text = answer(capsys, "--json")
    found = rows(text)
    assert (code, json.loads(text)["ok"]) == (0, True)
    netem = found["link delays (netem)"]
    assert (netem["has"], netem["needed"]) == (False, False)
    assert netem["remedy"] == NO_NETEM.remedy and "delay" in netem["costs"]
    assert found["eBPF (XDP)"]["has"]
    assert found["Mininet"]["found"] == "mininet 9.9"


def test_tools_are_found_by_any_of_their_programs_with_the_version_they_tell(
    machine, capsys
) -> None:
    folder = machine()
    program = folder / "simple_switch"
    program.write_text("#!/bin/sh\necho 1.15.0-of-$1\necho more\n")
    program.chmod(0o755)
    found = rows(answer(capsys, "--json")[1])
    assert found["BMv2"]["found"] == f"{program}: 1.15.0-of---version"
    assert not found["p4c"]["has"] and "setup.sh --peers" in found["p4c"]["remedy"]


def test_a_peer_that_does_not_run_is_missing_and_says_why(machine, capsys) -> None:
    program = machine() / "p4c-bm2-ss"
    program.write_text("#!/bin/sh\necho small.p4:1: no core.p4 >&2\nexit 1\n")
    program.chmod(0o755)
    row = rows(answer(capsys, "--json")[1])["p4c"]
    assert (row["has"], row["found"]) == (False, peers.p4c_trouble())
    assert row["found"] == "p4c-bm2-ss could not be run: small.p4:1: no core.p4"


def test_each_lack_says_cost_and_remedy(machine, capsys) -> None:
    machine(lambda topology: [NO_NETEM] if delayed(topology) else [])
    lacking = [row for row in rows(answer(capsys, "--json")[1]).values() if not row["has"]]
    assert {row["name"] for row in lacking} >= {"BMv2", "p4c", "p4-utils", "tshark"}
    assert all(row["costs"] and row["remedy"] for row in lacking)


def test_few_processors_and_little_memory_are_named(machine, capsys, monkeypatch) -> None:
    machine()
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 18}.get)
    code, text = answer(capsys)
    assert code == 0
    assert "lacks  processors" in text and "fidelity" in text
    assert "lacks  memory" in text and "1.0 GiB" in text
    assert text.startswith("Some Linux 9, Linux 6.1, aarch64\n")


def test_what_a_lack_costs_says_whether_virtual_time_goes_on() -> None:
    costs = {
        program: doctor._needed(lacks_program(program, "apt-get install it")).costs
        for program in ("tc", "cc")
    }
    assert costs == {
        "tc": "every scenario on real links; `backend: virtual` works",
        "cc": "every scenario",
    }
