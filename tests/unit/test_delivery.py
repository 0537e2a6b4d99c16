"""setup.sh, Vagrantfile and the workflow: what checks them may be absent."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import needs
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
VAGRANTFILE = (ROOT / "Vagrantfile").read_text()
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text()


@needs.mark("shellcheck")
@pytest.mark.parametrize(
    "script",
    [
        "setup.sh",
        "provision.sh",
        ".ci/run",
        "agglab",
        "toolchain/p4native/switch/bin/p4native-switch",
    ],
)
def test_scripts_pass_shellcheck(script: str) -> None:
    done = subprocess.run(["shellcheck", ROOT / script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@needs.mark("vagrant")
def test_vagrant_finds_the_machine_valid(tmp_path: Path) -> None:
    done = subprocess.run(
        ["vagrant", "validate", "--ignore-provider"],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path), "VAGRANT_DOTFILE_PATH": str(tmp_path / ".v")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_machine_is_pinned_and_small_enough() -> None:
    boxes = re.findall(r'vm\.box = "(.*)"', VAGRANTFILE)
    versions = re.findall(r'vm\.box_version = "([0-9]+\.[0-9]+\.[0-9]+)"', VAGRANTFILE)
    assert len(boxes) == len(versions) == 2
    assert set(re.findall(r"cpus = (\d+)", VAGRANTFILE)) == {"2"}
    assert set(re.findall(r"memory = (\d+)", VAGRANTFILE)) == {"4096"}


# What the Vagrantfile calls and assigns, a line each, on a machine of the given architecture.
RECORDER = """
RbConfig::CONFIG["host_cpu"] = ARGV[0]
class Recorder
  def method_missing(name, *values)
    puts "#{name} #{values}"
    yield self, self if block_given?
    self
  end
end
module Vagrant
  def self.configure(version) = yield(Recorder.new)
end
load ARGV[1]
"""


@needs.mark("ruby")
def test_libvirt_gets_a_machine_of_its_own_architecture() -> None:
    """What vagrant-libvirt chooses by itself is refused on ARM64: ACPI requires UEFI there."""
    said = {}
    for architecture in ("x86_64", "aarch64"):
        command = ["ruby", "-e", RECORDER, architecture, ROOT / "Vagrantfile"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        said[architecture] = done.stdout.splitlines()
    more = set(said["aarch64"]) - set(said["x86_64"])
    assert {'machine_type= ["virt"]', 'features= [["acpi"]]'} < more
    assert any(line.startswith("loader= ") for line in more)
    assert set(said["x86_64"]) < set(said["aarch64"])


@needs.mark("ruby")
def test_a_desktop_comes_only_if_it_is_asked_for() -> None:
    said = {}
    for asked in ("", "1"):
        command = ["ruby", "-e", RECORDER, "x86_64", ROOT / "Vagrantfile"]
        environment = {**os.environ, "VAGRANT_DESKTOP": asked}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        said[asked] = set(done.stdout.splitlines())
    desktop = said["1"] - said[""]
    assert said[""] < said["1"] and "gui= [true]" in desktop
    assert any("/agglab/provision.sh --desktop" in line for line in desktop)


def test_provisioning_refuses_what_it_does_not_know() -> None:
    done = subprocess.run([ROOT / "provision.sh", "--desk"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "usage: provision.sh [--desktop]\n")


def test_the_image_is_set_up_as_a_machine_is() -> None:
    steps = (ROOT / "Containerfile").read_text().splitlines()
    assert "COPY . ." in steps and any(step.startswith("RUN ./setup.sh ") for step in steps)
    ignored = (ROOT / ".containerignore").read_text().split()
    assert {".venv", ".peers", "build", "results"} <= {*ignored}


def test_the_development_container_is_the_image() -> None:
    described = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    built = described["build"]
    folder = ROOT / ".devcontainer"
    assert (folder / built["dockerfile"]).resolve() == ROOT / "Containerfile"
    assert (folder / built["context"]).resolve() == ROOT
    assert f"WORKDIR {described['workspaceFolder']}" in (ROOT / "Containerfile").read_text()


def test_vagrant_runs_the_script_that_sets_machines_up() -> None:
    assert 'inline: "/agglab/provision.sh"' in VAGRANTFILE
    assert os.access(ROOT / "provision.sh", os.X_OK)
    assert (ROOT / "provision.sh").read_text().count("\n./setup.sh --peers\n") == 1


def test_setup_refuses_what_it_does_not_know() -> None:
    done = subprocess.run([ROOT / "setup.sh", "--peer"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "usage: setup.sh [--peers | --test-tools]\n")


def test_the_workflow_calls_targets_that_exist() -> None:
    (job,) = yaml.safe_load(WORKFLOW)["jobs"].values()
    assert job["strategy"]["matrix"]["os"] == ["ubuntu-22.04", "ubuntu-24.04"]
    lines = "\n".join(step.get("run", "") for step in job["steps"])
    targets = set(re.findall(r"\bmake ([a-z]+)", lines))
    known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"doctor", "conformance", "scenario"} <= targets <= known
    tests = re.findall(r"\.ci/run|--peers|tests/run\.py .*", lines)
    assert tests == [".ci/run", "--peers", "tests/run.py --skipped"]


CALLED = """#!/bin/bash
printf '%s, CI=%s, .venv: %s\\n' "${0##*/} $*" "${CI-}" "$(ls .venv 2>/dev/null)" >>called
mkdir -p .venv/bin && cp "$0" .venv/bin/python
[ "$*" != "$FAILS" ]
"""


@pytest.mark.parametrize(
    ("fails", "code"), [("none", 0), ("test", 1), ("tests/run.py --long --skipped", 1)]
)
def test_ci_begins_as_a_newcomer_and_ends_with_what_is_long_or_was_skipped(
    tmp_path: Path, fails: str, code: int
) -> None:
    """With stand-ins for make, set-up and Python. The checkout has an environment with PyTorch."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (tmp_path / ".venv/torch").mkdir(parents=True)
    for name in ("make", "setup.sh"):
        (tmp_path / name).write_text(CALLED)
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CI": "true", "FAILS": fails}
    done = subprocess.run([tmp_path / ".ci/run"], env=environment)
    assert done.returncode == code
    expected = [
        "make test, CI=, .venv: ",
        "setup.sh --test-tools, CI=, .venv: bin",
        "python tests/run.py --long --skipped, CI=, .venv: bin",
    ]
    assert (tmp_path / "called").read_text().splitlines() == expected[: 1 if fails == "test" else 3]
