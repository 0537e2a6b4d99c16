"""ICMP messages of every kind, forged against running workers: sums are right, the job goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("icmp_storm.py")


@pytest.fixture(scope="module")
def stormed() -> dict:
    command = ["unshare", "--net", sys.executable, str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.root
def test_no_icmp_message_ends_a_round_or_changes_a_sum(stormed: dict) -> None:
    assert stormed["rounds"] == stormed["exact"] == 2 * len(stormed["errors"])
    assert stormed["unsent"] == 0


@pytest.mark.long
@pytest.mark.root
def test_those_that_a_connected_socket_hears_of_are_counted(stormed: dict) -> None:
    """Linux tells it of these codes of `unreachable`, and of parameter problems."""
    heard = {kind for kind, errors in stormed["errors"].items() if errors}
    assert heard == {
        *(f"3/{code}" for code in (2, 3, 4, 6, 7, 8, 9, 10, 13, 14, 15)),
        "12/0",
        "12/1",
        "12/2",
    }
