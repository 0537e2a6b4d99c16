"""The same scenarios run by an ordinary user: in a user namespace, losses at the switch's ports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs
import pytest

pytestmark = [pytest.mark.root, pytest.mark.alone]  # they look at all that nobody runs

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
SMALL = ("--set", "workload.elements=20000", "--set", "workload.rounds=1")


def started(
    command: list[str], home: Path, user: int | None = None
) -> subprocess.CompletedProcess[str]:
    """A program with a home of its own, which holds what the user compiled before; None is root."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "P4NATIVE_CACHE": str(home / f"cache-{user}"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A folder for root and nobody. Skips where nobody cannot run anything."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        can = [sys.executable, "-c", "import agglab.testbed.experiment.scenario_run"]
        try:
            can_run = started(can, Path(folder), NOBODY).returncode == 0
        except PermissionError:
            can_run = False
        if not can_run:
            needs.skip_lacking(
                "a checkout and a Python that the user nobody may read", "move the checkout"
            )
        if started(["unshare", "-Ur", "true"], Path(folder), NOBODY).returncode != 0:
            needs.skip_lacking("user namespaces for ordinary users", "allow them with sysctl")
        yield Path(folder)


def run_scenario(name: str, home: Path, user: int | None, *settings: str) -> tuple[Any, Any]:
    """metrics.json and drops.json of a run."""
    results = home / f"results-{user}"
    command = [sys.executable, "-m", "agglab.testbed", "run", name, "--results", str(results)]
    done = started([*command, *SMALL, *settings], home, user)
    # Whether a small run reaches the ratio it expects is a matter of the machine's load.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    (folder,) = (path for path in (results / name).iterdir() if not path.is_symlink())
    metrics, drops = ((folder / f"{part}.json").read_text() for part in ("metrics", "drops"))
    return json.loads(metrics), json.loads(drops)


def nothing_is_left(home: Path) -> bool:
    """No program of nobody's runs, and no scratch directory of his is there."""
    programs = started(["ps", "-u", str(NOBODY), "-o", "args="], home).stdout
    ours = [word for word in ("testbed", "switch", "hosts.agent") if word in programs]
    return not ours and [f.name for f in (home / f"agglab-{NOBODY}").iterdir()] == ["guard"]


@pytest.mark.long
def test_loss_loses_the_same_frames_as_with_root(home: Path) -> None:
    settings = ("--set", "links.loss=0.05")
    _, expected = run_scenario("loss", home, None, *settings)
    metrics, drops = run_scenario("loss", home, NOBODY, *settings)
    assert metrics["exact"]
    assert drops.keys() == expected.keys()
    for direction, dropped in drops.items():
        numbers, others = dropped["numbers"], expected[direction]["numbers"]
        # How often is sent again differs from run to run, and so where the numbers end.
        both = min(len(numbers), len(others))
        assert both > 0 and numbers[:both] == others[:both]
        assert dropped["count"] == len(numbers)
    assert nothing_is_left(home)


@pytest.mark.long
def test_quickstart(home: Path) -> None:
    metrics, drops = run_scenario("quickstart", home, NOBODY)
    assert metrics["exact"]
    assert all(dropped["count"] == 0 for dropped in drops.values())
    assert nothing_is_left(home)


def test_what_an_ordinary_user_cannot_have_is_named(home: Path) -> None:
    code = """
from agglab.testbed.schema.faults import AtTime, Fault, LinkDown
from agglab.testbed.real import lacks
from agglab.topologies import Corrupt, Direction, Drop, rack
way = Direction(impairments=(Drop(0.1),))
print(lacks(rack(2, way, way)))
way = Direction(impairments=(Drop(0.1), Corrupt(0.1)))
print(*lacks(rack(1, way), [Fault(1, "link_down", LinkDown("h1-s1"), AtTime(1.0))]))
"""
    done = started([sys.executable, "-c", code], home, NOBODY)
    assert done.stderr == ""
    nothing, refused = done.stdout.splitlines()
    assert nothing == "[]"
    assert "lacks eBPF" in refused
    assert "which corrupt on h1->s1, link_down of h1-s1 need" in refused
