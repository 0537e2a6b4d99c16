"""What the switch's log says of lost packets and of interfaces that change."""

from __future__ import annotations

from typing import Any

import pytest

from p4native.switch.drop_log import OF_PORT, OF_PROGRAM, OF_SWITCH, DropLog
from p4native.switch.io import PacketLoopError, native
from p4native.switch.link_log import LinkLog
from p4native.switch.p4runtime.links import Link

NEVER_LOST = {
    *("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_gso", "rx_checksums"),
    *("cpu_ns", "batches", "sleeps", "no_program"),
}


def statistics() -> dict[str, Any]:
    port = dict.fromkeys((name for name, *_ in native.PortStats._fields_), 0)
    ports = {"1": {"interface": "s1", **port}, "2": {"interface": "s2", **port}}
    loop = dict.fromkeys((name for name, *_ in native.LoopStats._fields_), 0)
    return {"ports": ports, **loop, "pipeline_drops": dict.fromkeys((*OF_PROGRAM, "ingress"), 0)}


def test_each_counter_of_losses_has_a_remedy() -> None:
    names = {name for name, *_ in (*native.PortStats._fields_, *native.LoopStats._fields_)}
    assert names - NEVER_LOST == OF_PORT.keys() | OF_SWITCH.keys()


@pytest.mark.parametrize("counter", [*OF_PORT, *OF_SWITCH, *OF_PROGRAM])
def test_a_loss_is_written_once_with_its_remedy(counter: str) -> None:
    counts, lines = statistics(), list[str]()
    log = DropLog(lambda: counts, lines.append)
    log.look()
    assert lines == []
    place = counts["ports"]["1"] if counter in OF_PORT else counts
    (place if counter in place else counts["pipeline_drops"])[counter] = 1
    log.look()
    log.look()
    [line] = lines
    reason = {**OF_PORT, **OF_SWITCH, **OF_PROGRAM}[counter].replace("INTERFACE", "s1")
    assert reason in line and f"(counted as {counter}; said once)" in line
    assert line.startswith("port 1 (s1): " if counter in OF_PORT else "a packet was lost: ")


def test_each_port_and_what_the_program_drops_itself() -> None:
    counts, lines = statistics(), list[str]()
    log = DropLog(lambda: counts, lines.append)
    for port in counts["ports"].values():
        port["tx_drops"] = 3
    counts["pipeline_drops"]["ingress"] = 9
    log.look()
    assert [line.split(":")[0] for line in lines] == ["port 1 (s1)", "port 2 (s2)"]


GONE, DOWN, UP, NEW = Link(0, False), Link(4, False), Link(4, True), Link(9, True)


@pytest.mark.parametrize(
    ("before", "now", "attached", "said"),
    [
        (UP, DOWN, False, "the interface is down; packets for it are lost"),
        (DOWN, UP, False, "the interface is up again"),
        (UP, GONE, False, "the interface is gone; packets for it are lost until it is back"),
        (GONE, NEW, True, "the interface is back, and is attached again"),
        (UP, NEW, True, "the interface is back, and is attached again"),
    ],
)
def test_changes_of_an_interface(before: Link, now: Link, attached: bool, said: str) -> None:
    ports, lines = list[int](), list[str]()
    LinkLog({3: "s3"}, ports.append, lines.append).changed(3, before, now)
    assert lines == [f"port 3 (s3): {said}"]
    assert ports == [3] * attached


def test_an_interface_that_cannot_be_attached_again() -> None:
    def refuse(port: int) -> None:
        raise PacketLoopError("no permission")

    lines = list[str]()
    LinkLog({3: "s3"}, refuse, lines.append).changed(3, GONE, NEW)
    [line] = lines
    assert line.endswith("cannot be attached: no permission; restart the switch")
