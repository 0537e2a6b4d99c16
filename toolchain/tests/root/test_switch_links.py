"""The state of the switch's ports, followed as cables are pulled."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest
from switch_lab import Namespace

from p4native.switch.p4runtime.links import Links

pytestmark = pytest.mark.root


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    namespace = Namespace()
    for number in (1, 2):
        namespace.sh(f"ip link add s{number} type veth peer name h{number}")
        namespace.sh(f"ip link set s{number} up")
        namespace.sh(f"ip link set h{number} up")
    yield namespace
    namespace.close()


def test_a_port_is_up_while_both_ends_of_its_cable_are(namespace: Namespace) -> None:
    changes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def follow() -> Links:
        links = Links({1: "s1", 2: "s2", 3: "gone"}, always=(255,))
        links.watch(lambda: changes.put(None))
        return links

    links = namespace.call(follow)

    def after(command: str, *up: int) -> None:
        namespace.sh(command)
        while [port for port in (1, 2, 3, 255) if links.up(port)] != [*up, 255]:
            changes.get()

    assert [port in links for port in (1, 3, 4, 255)] == [True, True, False, True]
    after("true", 1, 2)
    after("ip link set h2 down", 1)
    after("ip link set s1 down")
    after("ip link set h2 up", 2)
    after("ip link delete s2")
    links.close()
