"""`target: bmv2` on BMv2 itself: exact through both compilers, restarts, starts that fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pairs import need

from p4native.bmv2.thrift_cli import PROGRAM as CLI

pytestmark = [pytest.mark.peers, pytest.mark.root]
ROOT = Path(__file__).resolve().parents[2]
EGRESS_RATE = 500
"""Packets a second, while 165 chunks are sent at once: the time to add them up is too short for the
hundred that a queue has no room for."""
SMALL = ("workload.elements=60_001", "workload.rounds=2", "expect={exact: true}")


def run(
    results: Path, name: str, settings: tuple[str, ...], path: str | None = None
) -> tuple[int, str, Path]:
    """Exit code, what the terminal got, and the run's folder."""
    command = [sys.executable, "-m", "agglab.testbed", "run", name, "--results", str(results)]
    for setting in ("switch.target=bmv2", *settings):
        command += ["--set", setting]
    environment = {**os.environ, "PATH": path or os.environ["PATH"]}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout + done.stderr, results / name / "latest"


def metrics(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return found


INTERFACES = {"Thrift": ("simple_switch", CLI), "P4Runtime": ("simple_switch_grpc",)}


def only(folder: Path, interface: str, *compilers: str) -> str:
    """A PATH on which BMv2 has this interface alone."""
    tools = (*INTERFACES[interface], *compilers)
    need(*tools)
    folder.mkdir()
    for tool in tools:
        (folder / tool).write_text(f'#!/bin/sh\nexec {shutil.which(tool)} "$@"\n')
        (folder / tool).chmod(0o755)
    others = os.environ["PATH"].split(os.pathsep)
    named = {name for names in INTERFACES.values() for name in names}
    free = [path for path in others if not any((Path(path) / name).exists() for name in named)]
    return os.pathsep.join([str(folder), *free])


@pytest.fixture(params=INTERFACES)
def interface(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.long(but=["P4Runtime-agglab-quickstart"])
@pytest.mark.parametrize("name", ["quickstart", "loss", "two-racks"])
@pytest.mark.parametrize("compiler", ["agglab", "p4c"])
def test_exact_on_bmv2(tmp_path: Path, name: str, compiler: str, interface: str) -> None:
    path = only(tmp_path / "bin", interface, *(["p4c-bm2-ss"] if compiler == "p4c" else []))
    code, said, folder = run(tmp_path, name, (*SMALL, f"switch.compiler={compiler}"), path)
    assert code == 0, said
    found = metrics(folder)
    assert found["exact"] is True
    for switch in found["switches"].values():
        assert (switch["ring_drops"], switch["queue_drops"]) == (0, 0)


@pytest.mark.long
def test_a_restarted_switch_is_filled_again(tmp_path: Path, interface: str) -> None:
    """Also with clone sessions and instances of one's own."""
    own = {
        "multicast_group_entries": [
            {"multicast_group_id": 99, "replicas": [{"egress_port": 1}, {"egress_port": 2}]}
        ],
        "clone_session_entries": [
            {"clone_session_id": 5, "replicas": [{"egress_port": 1, "instance": 4}]}
        ],
    }
    own["multicast_group_entries"][0]["replicas"] += [{"egress_port": 2, "instance": 7}]
    (tmp_path / "own.json").write_text(json.dumps(own))
    settings = (f"switch.entries={tmp_path}/own.json",)
    code, said, folder = run(
        tmp_path, "switch-restart", settings, only(tmp_path / "bin", interface)
    )
    assert code == 0, said
    assert metrics(folder)["restarts"] > 0


def slow_egress(folder: Path) -> None:
    """Each port of the switch in `folder` sends EGRESS_RATE packets a second, from the first moment
    at which its Thrift port answers: its queues overflow however fast the machine is."""
    script = folder / "simple_switch"
    real = script.read_text()
    command = f"echo set_queue_rate {EGRESS_RATE} | {CLI} --thrift-port 9090"
    slowing = f"case $1 in --*) ;; *) (until {command}; do :; done) >/dev/null 2>&1 & esac\n"
    script.write_text(real.replace("exec", f"{slowing}exec", 1))


@pytest.mark.long
def test_what_its_queues_drop_is_counted_apart(tmp_path: Path) -> None:
    """A window that overflows the 64 packets of an egress queue; sums stay exact all the same."""
    path = only(tmp_path / "bin", "Thrift")
    slow_egress(tmp_path / "bin")
    settings = (*SMALL, "workload.window=512", "switch.slots=512", "links.rate=1gbit")
    code, said, folder = run(tmp_path, "quickstart", settings, path)
    assert code == 0, said
    found = metrics(folder)
    lost = found["switches"]["s1"]["queue_drops"] + found["switches"]["s1"]["ring_drops"]
    assert found["totals"]["injected_drops"] == 0
    assert 0 < lost <= found["totals"]["retransmitted"]
    assert found["totals"]["other_drops"] >= lost


@pytest.mark.parametrize(
    ("wrapped", "says"),
    [
        ('set -- $(echo "$@" | sed "s/[^ ]*[.]json/bad.json/"); echo "{" > bad.json', "no JSON"),
        ("python3 -m http.server 9090 & sleep 0; wait_for_it=1", "Thrift port"),
    ],
)
def test_a_start_that_fails_has_its_cause(tmp_path: Path, wrapped: str, says: str) -> None:
    """The real switch with a bad program, and with its Thrift port taken."""
    path = only(tmp_path / "real", "Thrift")
    folder = tmp_path / "bin"
    folder.mkdir()
    real = tmp_path / "real" / "simple_switch"
    script = f"#!/bin/sh\ncase $1 in --*) exec {real} $1;; esac\ncd {tmp_path}\n{wrapped}\n"
    if "9090" in wrapped:
        script += (
            "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9090))'"
        )
        script += " 2>/dev/null; do :; done\n"
    (folder / "simple_switch").write_text(f'{script}exec {real} "$@"\n')
    (folder / "simple_switch").chmod(0o755)
    code, said, _ = run(tmp_path, "quickstart", SMALL, f"{folder}:{path}")
    assert code == 1, said
    assert "likely cause: " in said
    assert says in said


@pytest.mark.parametrize(
    ("wrapped", "says"),
    [("kill -9 $$", "somebody killed it"), ("echo cannot open >&2; exit 127", "cannot open")],
)
def test_a_grpc_switch_that_does_not_start(tmp_path: Path, wrapped: str, says: str) -> None:
    path = only(tmp_path / "bin", "P4Runtime")
    script = tmp_path / "bin" / "simple_switch_grpc"
    help_ = f'#!/bin/sh\ncase $1 in --*) exec {shutil.which(script.name)} "$@";; esac\n'
    script.write_text(f"{help_}{wrapped}\n")
    code, said, _ = run(tmp_path, "quickstart", SMALL, path)
    assert code == 1, said
    assert "command: simple_switch_grpc -i 1@s1-eth1" in said
    assert says in said
