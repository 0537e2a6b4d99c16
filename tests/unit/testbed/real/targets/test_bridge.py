"""`switch.target: bridge`: the lines that make it and fill it, and who may ask for it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.real.targets import SwitchSetting, bridge
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.systems.plan import Entries, TableEntry
from agglab.testbed.systems.plan.changes import NO_ENTRIES
from p4native.bmv2.errors import ControlError

SETTING = SwitchSetting("s1", 1, {1: "s1-eth1", 2: "s1-eth2"}, Path(), None, 42)


class Kernel:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[str]]] = []
        self.namespaces: list[int] = []
        self.refuses = ""

    def run(self, command: list[str], input: str, **_: object) -> SimpleNamespace:
        self.told.append((command[0], input.splitlines()))
        return SimpleNamespace(returncode=int(bool(self.refuses)), stderr=self.refuses)

    @contextlib.contextmanager
    def inside(self, pid: int) -> Iterator[None]:
        self.namespaces.append(pid)
        yield


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    monkeypatch.setattr(bridge, "subprocess", SimpleNamespace(run=kernel.run))
    monkeypatch.setattr(bridge, "network_namespace", kernel.inside)
    return kernel


def at(**ports: int) -> Entries:
    """Hosts by the last byte of their addresses, and a table that is none of a bridge's."""
    macs = [
        TableEntry("macs", {"dst": 0x020000000000 + int(host[1:])}, "forward", {"port": port})
        for host, port in ports.items()
    ]
    return Entries((*macs, TableEntry("routes", {"dst": (1, 32)}, "route", {"port": 1})), {})


def test_ports_learn_nothing_and_flood_nothing(kernel: Kernel) -> None:
    """As the network has rings, a frame that is flooded might never end."""
    control = bridge.BridgeTarget(Path(), Path()).control(SETTING)
    assert control.answers(0)
    control.begin()
    lines = [line for program, batch in kernel.told for line in batch if program == "ip"]
    assert lines == [
        "link add name bridge0 type bridge mcast_snooping 0 stp_state 0",
        "link set dev s1-eth1 master bridge0",
        "link set dev s1-eth1 type bridge_slave learning off flood off mcast_flood off "
        "bcast_flood off",
        "link set dev s1-eth2 master bridge0",
        "link set dev s1-eth2 type bridge_slave learning off flood off mcast_flood off "
        "bcast_flood off",
        "link set dev bridge0 up",
    ]
    assert set(kernel.namespaces) == {42}


def test_only_what_differs_is_changed(kernel: Kernel) -> None:
    control = bridge.BridgeControl(SETTING)
    control.change(NO_ENTRIES, at(h1=1, h2=2))
    control.change(at(h1=1, h2=2), at(h1=2, h2=2))
    assert kernel.told == [
        (
            "bridge",
            [
                "fdb add 02:00:00:00:00:01 dev s1-eth1 master static",
                "fdb add 02:00:00:00:00:02 dev s1-eth2 master static",
            ],
        ),
        (
            "bridge",
            [
                "fdb del 02:00:00:00:00:01 dev s1-eth1 master",
                "fdb add 02:00:00:00:00:01 dev s1-eth2 master static",
            ],
        ),
    ]
    kernel.told.clear()
    control.change(at(h1=1), at(h1=1))
    assert kernel.told == []


def test_it_goes_with_its_control_and_comes_back(kernel: Kernel) -> None:
    control = bridge.BridgeControl(SETTING)
    control.close()
    assert kernel.told == [], "it was never made"
    control.begin()
    kernel.told.clear()
    control.reset()
    assert kernel.told[0] == ("ip", ["link del dev bridge0"])
    assert kernel.told[1][1][0].startswith("link add name bridge0")
    control.close()
    control.close()
    assert [batch for _, batch in kernel.told].count(["link del dev bridge0"]) == 2


def test_what_the_kernel_refuses_is_said(kernel: Kernel) -> None:
    kernel.refuses = "Error: Unknown device type.\nCommand failed -:1\n"
    with pytest.raises(ControlError, match=r"ip: Error: Unknown device type\. Command failed"):
        bridge.BridgeControl(SETTING).begin()


def test_it_counts_and_keeps_nothing() -> None:
    control = bridge.BridgeControl(SETTING)
    with pytest.raises(ValueError):
        control.read_counter("forwarded")
    with pytest.raises(ValueError):
        control.read_register("tags", [0])


def test_it_wants_iproute2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "which", lambda name: None)
    with pytest.raises(MachineLacks, match=r"the program bridge: .*apt-get install iproute2"):
        bridge.installed()


def test_a_process_stands_for_it() -> None:
    target = bridge.BridgeTarget(Path(), Path())
    with subprocess.Popen(target.command(SETTING)) as process:
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "switch.target: switchml does not support bridge; allowed: native, bmv2"),
        ("system: ring\nbackend: virtual\n", "bridge does not run in virtual time"),
        ("system: ring\nswitch: {pcap: true, target: bridge}\n", "switch.pcap: a bridge runs no"),
        (
            "system: ring\nswitch: {program: forwarding, target: bridge}\n",
            "switch.program: a bridge runs no P4 program",
        ),
        (
            "system: ring\ntopology: {workers: 3}\njobs: [{workers: 'h[12]'}]\n"
            "faults: [{kind: attack, host: h3, at: 1s, for: 1s, frames: 9}]\n",
            "faults[0].kind: a bridge also forwards frames with a forged source address",
        ),
    ],
)
def test_what_needs_a_program_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text if "switch:" in text else f"switch: {{target: bridge}}\n{text}")
    with pytest.raises(ScenarioError) as refused:
        load(path)
    assert says in str(refused.value)


@pytest.mark.parametrize("system", ["ring", "ps", "gloo"])
def test_systems_between_hosts_may_have_it(tmp_path: Path, system: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"system: {system}\nswitch: {{target: bridge}}\n")
    assert load(path).points[0].resolved.target == "bridge"
