"""`agglab exec` finds the network that has the node, or says which there are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agglab.testbed.base import scratch
from agglab.testbed.base.problems import ScenarioError
from agglab.testbed.cli.shell import exec_command


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the notes of two networks: one has h1 and h2, the other h2 and h3. All are in
    the namespace of this process."""
    own = os.stat("/proc/self/ns/net").st_ino
    for number, hosts in enumerate((("h1", "h2"), ("h2", "h3"))):
        nodes = {name: {"namespace": own, "ip": f"10.0.0.{name[1]}"} for name in hosts}
        folder = tmp_path / f"run-{number}" / "0-0"
        folder.mkdir(parents=True)
        notes = {"results": f"{tmp_path}/results-{number}", "nodes": nodes}
        (folder / "nodes.json").write_text(json.dumps(notes))
    monkeypatch.setattr(scratch, "in_use", lambda: sorted(tmp_path.glob("run-*")))
    return tmp_path


def refused(*words: str) -> str:
    with pytest.raises(ScenarioError) as error:
        exec_command.main(words)
    return str(error.value)


def test_the_program_runs_with_addresses_for_hosts(
    up: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert exec_command.main(["h1", "--", "sh", "-c", 'echo "$0 $1"; exit 5', "h2", "h9"]) == 5
    assert capfd.readouterr().out == "10.0.0.2 h9\n"


def test_a_node_of_two_networks_has_to_be_chosen(up: Path) -> None:
    assert refused("h2", "--", "true") == (
        f"h2: is a node of 2 networks: choose with --run; allowed: {up}/results-0, {up}/results-1"
    )
    assert exec_command.main(["h2", "--run", f"{up}/results-1", "--", "true"]) == 0


def test_an_unknown_node_is_named(up: Path) -> None:
    assert refused("h7", "--", "true") == "h7: no such node; allowed: h1, h2, h3"
    assert "no such node" in refused("h3", "--run", f"{up}/results-0", "--", "true")


def test_nothing_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "in_use", list)
    assert refused("h1", "--", "true").startswith(
        "exec: no network on real links of this user is up, so there is no 'h1'"
    )
