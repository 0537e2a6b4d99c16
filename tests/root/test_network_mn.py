"""`mn --custom topologies/mn.py --topo rack,4`, as a user of plain Mininet would call it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import needs
import pytest

pytestmark = [
    pytest.mark.root,
    needs.mark("mn"),
]

ROOT = Path(__file__).resolve().parents[2]
# mn makes its switches' interfaces in the namespace it runs in: give it one of its own.
ALONE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]


def mn(cwd: Path, *arguments: str) -> str:
    custom = str(ROOT / "topologies" / "mn.py")
    command = [*ALONE, "mn", "--custom", custom, "--switch", "bridge", "--controller", "none"]
    done = subprocess.run([*command, *arguments], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.long
def test_rack_from_any_directory(tmp_path: Path) -> None:
    said = mn(tmp_path, "--topo", "rack,3", "--test", "pingall")
    assert "0% dropped (6/6 received)" in said


def test_rack_has_our_addresses(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("h2 ip -br -4 address\nh2 cat /sys/class/net/h2-eth0/address\nlinks\n")
    said = mn(tmp_path, "--topo", "rack,2", "--pre", str(script), "--test", "none")
    assert "10.0.0.2/16" in said
    assert "02:00:00:00:00:02" in said
    assert "h2-eth0<->s1-eth2" in said


@pytest.mark.long
def test_two_racks_by_names_of_arguments(tmp_path: Path) -> None:
    said = mn(tmp_path, "--topo", "two_tier,racks=2,workers=2", "--test", "pingall")
    assert "0% dropped (12/12 received)" in said
    assert "s1 s2 s3" in said
