"""What `pip install` of a wheel leaves is whole: it runs away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain_wheel import TOOLCHAIN, copy_toolchain
from wheel_sources import DATA, PACKAGES, copy_sources

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages, as pip makes it of copies of the sources."""
    target, sources = tmp_path_factory.mktemp("target"), []
    for copy in (copy_toolchain, copy_sources):
        sources.append(str(tmp_path_factory.mktemp("source")))
        copy(Path(sources[-1]))
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, *sources], check=True)
    return target


def words(installed: Path, cwd: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(cwd)}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_every_file_of_the_packages_is_there(installed: Path) -> None:
    """But the systems' pages and tests, which are for those who have a checkout."""
    homes = {ROOT / part: installed / "agglab" / part for part in PACKAGES}
    homes |= {ROOT / part: installed / "share/agglab" / part for part in DATA}
    homes |= {TOOLCHAIN / "p4native": installed / "p4native"}
    for source, home in homes.items():
        found = {file.relative_to(home) for file in home.rglob("*") if file.is_file()}
        for file in source.rglob("*"):
            own = file.relative_to(source)
            left_out = source == ROOT / "systems" and ("tests" in own.parts or file.suffix == ".md")
            if file.is_file() and file.suffix != ".pyc" and not left_out:
                assert own in found, file


@pytest.mark.long
def test_a_scenario_runs_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    said = words(
        installed,
        tmp_path,
        *("-m", "agglab.testbed", "run", "quickstart", "--results", str(tmp_path / "results")),
        *("--set", "backend=virtual", "--set", "workload.elements=9000"),
    )
    assert "PASSED  quickstart" in said
    assert list((tmp_path / "p4native/programs").glob("switchml-*.json"))
    assert not (installed / "build").exists()


def test_it_claims_two_names_only(installed: Path) -> None:
    """Users' own repositories have packages called hosts, testbed, topologies, ..."""
    found = {path.name for path in installed.iterdir()}
    names = {name for name in found if not name.endswith(".dist-info")}
    assert names == {"agglab", "p4native", "bin", "share"}


def test_the_drop_in_finds_its_python(installed: Path, tmp_path: Path) -> None:
    script = installed / "p4native/switch/bin/p4native-switch"
    done = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("p4native-switch"), done.stderr


def test_remedies_are_what_an_installed_wheel_can_do(installed: Path, tmp_path: Path) -> None:
    program = """
from agglab.testbed.cli import doctor
from agglab.testbed.run.programs import program
from agglab.testbed.base.errors import C_COMPILER, lacks_program
from agglab.testbed.real.targets import bmv2, native
from agglab.testbed.base.command_lines import module_remedy
print(lacks_program(*C_COMPILER), *map(module_remedy, ("mininet", "grpc", "p4.v1", "numpy")))
print(bmv2.REMEDY, program.P4C_REMEDY, *native.LIKELY_CAUSES.values())
print(*(tool.remedy for tool in doctor.TOOLS))
"""
    said = words(installed, tmp_path, "-c", program)
    assert "make setup" not in said and "setup.sh" not in said
    for remedy in ("gcc libc6-dev", "install mininet", "install grpcio", "install p4runtime"):
        assert remedy in said
