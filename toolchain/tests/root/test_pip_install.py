"""README's walk from prog.p4 to packets, followed to the letter where there is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from switch_lab import Namespace
from toolchain_wheel import copy_toolchain

pytestmark = [pytest.mark.root, pytest.mark.long]
TOOLCHAIN = Path(__file__).resolve().parents[2]
HEADING = "## From a program to packets\n"
SENDER, RECEIVER = bytes.fromhex("0a0000000001"), bytes.fromhex("0b0000000002")
REST = bytes.fromhex("88b5") + bytes(range(50))


@dataclass(frozen=True)
class Readme:
    """The code blocks of the section, in their order there."""

    install: str
    program: str
    compile: str
    interfaces: str
    start: str


@pytest.fixture(scope="module")
def readme() -> Readme:
    section = (TOOLCHAIN / "README.md").read_text().split(HEADING)[1].split("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["sh", "p4", "sh", "sh", "sh"]
    return Readme(*(text for _, text in blocks))


class Newcomer:
    """A folder outside the checkout, and an environment in which nothing leads back to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        inherited = ("PYTHONPATH", "VIRTUAL_ENV", "P4NATIVE_CACHE", "XDG_CACHE_HOME")
        self.environment = {k: v for k, v in os.environ.items() if k not in inherited}
        # The packages that p4native depends on are lent by this environment instead of downloaded.
        self.environment |= {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "HOME": str(folder)}

    def command(self, text: str) -> list[str]:
        """A command line for lines of README; after the first block its environment is active."""
        activate = "" if not (self.folder / "p4").exists() else ". p4/bin/activate\n"
        return ["sh", "-ec", activate + text]

    def run(self, text: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment | more
        return subprocess.run(
            self.command(text), cwd=self.folder, env=environment, capture_output=True, text=True
        )

    def lend_dependencies(self) -> None:
        """Let the new environment see this one's packages, but not its editable Agglab."""
        (site,) = self.folder.glob("p4/lib/python*/site-packages")
        borrowed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        (site / "borrowed.pth").write_text("\n".join(dict.fromkeys(borrowed)) + "\n")


@pytest.fixture(scope="module")
def newcomer(readme: Readme, tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """Somebody who has done what README says, up to the compiled program."""
    folder = tmp_path_factory.mktemp("newcomer")
    build_wheel(tmp_path_factory.mktemp("source"), folder)
    newcomer = Newcomer(folder)
    succeeded(newcomer.run(readme.install))
    newcomer.lend_dependencies()
    (folder / "prog.p4").write_text(readme.program)
    succeeded(newcomer.run(readme.compile))
    return newcomer


def build_wheel(source: Path, target: Path) -> None:
    """Leave the toolchain's wheel in target; source is an empty folder to make it in."""
    copy_toolchain(source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True)


def succeeded(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def network() -> Iterator[Namespace]:
    namespace = Namespace()
    yield namespace
    namespace.close()


def test_compiler_and_switch_are_the_installed_ones(newcomer: Newcomer) -> None:
    imported = "python -c 'import p4native.switch; print(p4native.switch.__file__)'"
    done = newcomer.run(f"command -v p4native-c\ncommand -v p4native-switch\n{imported}")
    succeeded(done)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith(str(newcomer.folder / "p4")) for line in lines)


def test_compiling_leaves_json_and_p4info(newcomer: Newcomer) -> None:
    assert (newcomer.folder / "prog.json").stat().st_size > 1000
    assert 'arch: "v1model"' in (newcomer.folder / "prog.p4info.txtpb").read_text()


def test_the_switch_forwards(newcomer: Newcomer, readme: Readme, network: Namespace) -> None:
    enter = network.command("env", "--chdir", str(newcomer.folder))
    for line in readme.interfaces.splitlines():
        network.sh(line)
    switch = subprocess.Popen(
        [*enter, *newcomer.command("exec " + readme.start)],
        env=newcomer.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert switch.stdout is not None
        said = ""
        while "ready: " not in said:
            line = switch.stdout.readline()
            assert line, f"the switch ended: {said}"
            said += line
        host = network.packet_socket("veth1")
        host.send(RECEIVER + SENDER + REST)
        assert host.recv(2048) == SENDER + RECEIVER + REST
        host.close()
    finally:
        switch.terminate()
        switch.communicate()
    assert switch.returncode == 0


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("p4native-c prog.p4 --frob", 2, "unrecognized arguments: --frob"),
        ("p4native-c prog.p4 -o prog.json --toJSON x", 2, "--toJSON is not supported"),
        ("p4native-c missing.p4 -o prog.json", 1, "missing.p4: No such file or directory"),
        ("p4native-switch --frob prog.json", 2, "--frob"),
        ("p4native-switch prog.json -- --frob", 2, "--frob"),
        ("p4native-switch missing.json", 4, "missing.json: cannot be read"),
        ("p4native-switch -i 1@nowhere prog.json", 5, "port 1 (nowhere): no such interface"),
    ],
)
def test_mistakes_are_one_line(newcomer: Newcomer, line: str, code: int, says: str) -> None:
    done = newcomer.run(line)
    assert done.returncode == code
    assert says in done.stderr and "Traceback" not in done.stderr


def test_a_missing_c_compiler_is_named(newcomer: Newcomer, tmp_path: Path) -> None:
    """README: both commands call it when they run."""
    for command in ("p4native-c", "p4native-switch"):
        (tmp_path / command).symlink_to(newcomer.folder / "p4/bin" / command)
    path, cache = f"PATH={tmp_path}", f"P4NATIVE_CACHE={tmp_path}/cache"
    compiling = newcomer.run(f"{path} p4native-c prog.p4 -o other.json")
    assert (compiling.returncode, "apt-get install gcc" in compiling.stderr) == (1, True)
    switching = newcomer.run(f"{path} {cache} p4native-switch prog.json")
    assert (switching.returncode, "apt-get install gcc" in switching.stderr) == (3, True)


def test_bmv2_flags_without_effect_are_accepted(newcomer: Newcomer) -> None:
    done = newcomer.run("p4native-c --target bmv2 --arch v1model --std p4-16 -DN=1 -I. prog.p4 -E")
    succeeded(done)
    assert "V1Switch" in done.stdout
