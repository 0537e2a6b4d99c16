"""What messages tell the user to type works: in every folder of a checkout, and after pip."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agglab.testbed.base import command_lines, system_programs
from agglab.testbed.base.command_lines import extra, launcher, module, module_remedy, setup

ROOT = Path(__file__).resolve().parents[4]
NAMES = ("agglab", "p4native-c", "p4native-lsp", "p4native-stf", "p4native-switch")


def says_version(line: str, folder: Path) -> bool:
    done = subprocess.run(
        ["sh", "-c", f"{line} --version"], cwd=folder, capture_output=True, text=True
    )
    return done.returncode == 0 and done.stdout.startswith(("agglab ", "p4native-"))


@pytest.mark.parametrize("name", NAMES)
def test_a_launcher_is_named_by_its_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert launcher(name) == f"./{name}" and says_version(launcher(name), ROOT)
    monkeypatch.chdir(tmp_path)
    assert launcher(name) == f"{ROOT}/{name}" and says_version(launcher(name), tmp_path)


def test_other_commands_of_a_checkout_work_elsewhere_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv/bin/python"))
    monkeypatch.chdir(ROOT)
    assert setup() == "run `make setup`"
    assert module("agglab.verification") == ".venv/bin/python -m agglab.verification"
    assert extra("dask") == ".venv/bin/python -m pip install --editable '.[dask]'"
    monkeypatch.chdir(tmp_path)
    assert setup() == f"run `make -C {ROOT} setup`"
    assert module("benchmarks") == f"{ROOT}/.venv/bin/python -m benchmarks"
    assert extra("dask").endswith(f"--editable '{ROOT}[dask]'")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of programs of an environment in which pip has installed Agglab. It is not on
    PATH, and its name has a space."""
    programs = tmp_path / "my env"
    programs.mkdir()
    for name in (*NAMES, "python"):
        (programs / name).symlink_to(Path(sys.executable).with_name(name))
    monkeypatch.setattr(command_lines, "IS_CHECKOUT", False)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return programs


def test_an_installed_program_is_named_as_the_shell_finds_it(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert launcher() == shlex.quote(str(installed / "agglab"))
    assert says_version(launcher(), installed)
    monkeypatch.setenv("PATH", f"{installed}:/usr/bin:/bin")
    assert launcher() == "agglab" and module("x") == "python -m x"
    assert setup() == "" and extra("dask") == "python -m pip install 'agglab[dask]'"
    assert module_remedy("grpc") == "python -m pip install grpcio"


def test_another_agglab_on_path_is_not_meant(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "agglab").write_text("#!/bin/sh\n")
    (other / "agglab").chmod(0o755)
    monkeypatch.setenv("PATH", f"{other}:/usr/bin:/bin")
    assert launcher() == shlex.quote(str(installed / "agglab"))


def test_without_scripts_the_module_is_named(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NAMES:
        (installed / name).unlink()
    assert launcher() == f"{shlex.quote(str(installed / 'python'))} -m agglab.testbed"


@pytest.mark.parametrize("name", NAMES)
def test_a_checkout_that_is_not_set_up_says_so(name: str, tmp_path: Path) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    shutil.copy(ROOT / "agglab", checkout / "agglab")
    if name != "agglab":
        (checkout / name).symlink_to("agglab")
    done = subprocess.run([checkout / name, "list"], capture_output=True, text=True)
    assert done.returncode == 3 and done.stdout == ""
    assert done.stderr == (
        f"{name}: Agglab is not set up yet: run `make -C '{checkout}' setup` first\n"
    )


def test_the_launchers_are_one_script() -> None:
    assert {name: os.readlink(ROOT / name) for name in NAMES[1:]} == dict.fromkeys(
        NAMES[1:], "agglab"
    )


def test_folders_of_the_administrator_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/usr/sbin:/games")
    for _ in range(2):
        system_programs.add_to_path()
        expected = "/usr/local/bin:/usr/bin:/usr/sbin:/games:/usr/local/sbin:/sbin"
        assert os.environ["PATH"] == expected


def test_agglab_finds_programs_of_the_administrator(tmp_path: Path) -> None:
    """As an ordinary user's PATH leaves their folders out."""
    program = (
        "import shutil, sys; from agglab.testbed.cli import main; from agglab.testbed.__main__ "
    )
    program += "import run; main.main = lambda: print(shutil.which('tc')); run()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    expected = shutil.which("tc", path="/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
    assert done.stdout.splitlines() == [str(expected)], done.stderr
