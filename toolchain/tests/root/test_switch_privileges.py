"""The switch gives up root before it compiles or runs anybody's program."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from switch_lab import Lab, receive
from switch_process import (
    FRAME,
    JSON,
    P4INFO,
    PORTS,
    ROOT,
    Failure,
    Program,
    address,
    entry,
)

pytestmark = pytest.mark.root
NOBODY = pwd.getpwnam("nobody").pw_uid
TELLTALE = """#!/bin/sh
# Says as whom each program is compiled; the packet loop is no program.
case "$*" in *program.c*) id -u >> {folder}/users ;; esac
exec {compiler} "$@"
"""


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder that other users can enter, as pytest's own is not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def started(
    lab: Lab, everybodys: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Program]]:
    """Starts switches with a cache that is empty at first."""
    monkeypatch.setenv("P4NATIVE_CACHE", str(everybodys / "cache"))
    programs: list[Program] = []

    def start(*words: str, **options: Any) -> Program:
        folder = everybodys / f"s{len(programs)}"
        folder.mkdir()
        programs.append(Program(lab, folder, *words, **options))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.stop()


@pytest.fixture
def compilers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[int]]]:
    """As whom programs have been compiled since."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        users, compiler = Path(folder) / "users", Path(folder) / "cc"
        compiler.write_text(TELLTALE.format(folder=folder, compiler=shutil.which("cc")))
        compiler.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

        def seen() -> list[int]:
            lines = users.read_text().split()
            users.unlink()
            return [int(line) for line in lines]

        yield seen


def status(path: Path) -> dict[str, str]:
    lines = (line.partition(":") for line in (path / "status").read_text().splitlines())
    return {key: value.strip() for key, _, value in lines}


def another_program() -> bytes:
    """One that is not in the cache: another size of a table."""
    document = json.loads(JSON.read_text())
    document["pipelines"][0]["tables"][0]["max_size"] += 1
    return json.dumps(document).encode()


def test_programs_are_compiled_and_run_by_nobody(
    lab: Lab, started: Callable[..., Program], compilers: Callable[[], list[int]]
) -> None:
    program = started(*PORTS, "--p4info", str(P4INFO), str(JSON), target="--cpu-port 255")
    assert compilers() == [NOBODY], "the program of the command line"
    program.push(another_program())
    assert compilers() == [NOBODY], "one that came over P4Runtime"
    program.write(entry("I.forward", b"\x02"))
    hosts = lab.packet_sockets()
    hosts[0].send(FRAME)
    assert receive(hosts[1]) == FRAME
    # Nothing needs to be opened again.
    for change in ("s1 down", "s1 up", "s2 mtu 1400", "s2 mtu 9000"):
        lab.switch.sh(f"ip link set {change}")
    hosts[0].send(FRAME)
    assert receive(hosts[1]) == FRAME
    for host in hosts:
        host.close()
    tasks = list(Path(f"/proc/{program.process.pid}/task").iterdir())
    assert len(tasks) > 3
    for task in tasks:
        found = status(task)
        assert found["Uid"].split() == found["Gid"].split() == [str(NOBODY)] * 4
        assert found["Groups"] == str(NOBODY) and found["NoNewPrivs"] == "1"
        assert {found[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Amb")} == {"0" * 16}
    assert program.stop() == 0
    lines = program.errors.splitlines()
    assert [line for line in lines if " (s1): the interface is " not in line] == []
    assert [path.name for path in program.folder.iterdir()] == ["stats.json"]


@pytest.mark.long
def test_no_other_process_of_that_user_reaches_its_cache(
    started: Callable[..., Program], everybodys: Path
) -> None:
    started(str(JSON))
    own = everybodys / "cache" / "dropped" / str(NOBODY)
    (library,) = own.glob("switch/*.so")
    assert library.stat().st_uid == NOBODY and own.stat().st_mode & 0o777 == 0o700
    as_nobody = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--regid=nogroup"]
    seen = subprocess.run([*as_nobody, "ls", str(everybodys / "cache")], capture_output=True)
    assert seen.returncode == 0, "the folders above it can be entered"
    for words in (["ls", str(own)], ["cp", "/dev/null", str(library)]):
        tried = subprocess.run([*as_nobody, *words], capture_output=True, text=True)
        assert tried.returncode and "Permission denied" in tried.stderr
    # Root's own, from which it loads the packet loop, is not that user's.
    (loop,) = (everybodys / "cache" / "switch").glob("*.so")
    assert loop.stat().st_uid == 0


@pytest.mark.long
def test_a_checkout_that_nobody_can_enter(started: Callable[..., Program], tmp_path: Path) -> None:
    """All that is needed later is read before: modules, the C that programs include."""
    tmp_path.chmod(0o700)
    shutil.copytree(ROOT / "p4native", tmp_path / "p4native")
    program = started("--p4info", str(P4INFO), str(JSON), root=tmp_path)
    assert Path(f"/proc/{program.process.pid}/cwd").readlink() == tmp_path
    program.push(another_program())


@pytest.mark.long
def test_another_user_can_be_named(
    started: Callable[..., Program], compilers: Callable[[], list[int]]
) -> None:
    user = pwd.getpwnam("daemon").pw_uid
    program = started("--user", "daemon", str(JSON))
    assert compilers() == [user]
    assert status(Path(f"/proc/{program.process.pid}"))["Uid"].split() == [str(user)] * 4


@pytest.mark.parametrize(
    ("name", "why"), [("root", "is root"), ("no-such-user", "no user no-such-user")]
)
def test_users_that_it_cannot_become(lab: Lab, tmp_path: Path, name: str, why: str) -> None:
    code, error = Failure(lab)("--no-p4", "--user", name, *address(tmp_path))
    assert code == 3 and why in error
    assert list(tmp_path.iterdir()) == []


def test_it_does_not_go_on_as_root(lab: Lab, tmp_path: Path) -> None:
    before = ("setpriv", "--bounding-set", "-setuid", "--inh-caps", "-setuid")
    code, error = Failure(lab)("--no-p4", *address(tmp_path), before=before)
    assert code == 3 and "cannot become nobody" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_root_of_a_user_namespace_stays_what_it_is(lab: Lab, tmp_path: Path) -> None:
    """It has nobody to become, and is nothing outside."""
    ready, told = os.pipe()
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        sys.executable,
        "-m",
        "p4native.switch",
        "--no-p4",
    ]
    process = subprocess.Popen(
        [*command, "--ready-fd", str(told), *address(tmp_path)],
        cwd=ROOT,
        pass_fds=[told],
        stderr=subprocess.PIPE,
        env={**os.environ, "P4NATIVE_CACHE": str(tmp_path / "cache")},
    )
    os.close(told)
    with open(ready, "rb") as pipe:
        assert pipe.read() == b"\n"
    assert status(Path(f"/proc/{process.pid}"))["NoNewPrivs"] == "1"
    process.terminate()
    assert process.communicate()[1] == b"" and process.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.long
def test_other_users_reach_neither_socket(started: Callable[..., Program]) -> None:
    """Not even in a folder that everybody may enter, as --grpc-server-addr may name one."""
    program = started("--no-p4")
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    for name in ("grpc", "stats"):
        command = [sys.executable, "-c", connect, f"{program.folder}/{name}"]
        assert subprocess.run(command).returncode == 0
        # Not subprocess's `user`: it forks this interpreter, in which gRPC has threads.
        as_nobody = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--regid=nogroup"]
        tried = subprocess.run([*as_nobody, *command], capture_output=True, text=True)
        assert "PermissionError" in tried.stderr, "not even who the switch is now"


@pytest.mark.long
def test_addresses_beyond_loopback_are_warned_of(lab: Lab, tmp_path: Path) -> None:
    lab.switch.sh("ip link set lo up")
    for host, warned in (("127.0.0.1", False), ("0.0.0.0", True), ("[::]", True)):
        ready, told = os.pipe()
        where = f"{host}:9559"
        command = [sys.executable, "-m", "p4native.switch", "--no-p4", "--ready-fd", str(told)]
        process = subprocess.Popen(
            lab.switch.command(*command, "--", "--grpc-server-addr", where),
            cwd=ROOT,
            pass_fds=[told],
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(told)
        with open(ready, "rb") as pipe:
            assert pipe.read() == b"\n"
        process.terminate()
        said = process.communicate()[1]
        assert process.returncode == 0
        assert said.count("\n") == warned and (where in said) == warned, said
        assert not warned or said.startswith("switch: warning: P4Runtime on ")
