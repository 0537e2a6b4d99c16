"""Writes to the switch's log when a port's interface goes down, comes up, disappears or is there
again, and then lets the packet loop use the new interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from p4native.switch.io import PacketLoopError
from p4native.switch.p4runtime.links import Link


class LinkLog:
    """Follows the interfaces of the ports.

    interfaces: P4 port -> interface. attach: lets the packet loop receive from and send to a port's
    interface of the present; raises PacketLoopError. write: takes a line.
    """

    def __init__(
        self,
        interfaces: Mapping[int, str],
        attach: Callable[[int], None],
        write: Callable[[str], None],
    ) -> None:
        self._interfaces, self._attach, self._write = interfaces, attach, write

    def changed(self, port: int, before: Link, now: Link) -> None:
        """Is called with the state of a port's interface before and after a change."""
        place = f"port {port} ({self._interfaces[port]})"
        if not now.index:
            self._write(f"{place}: the interface is gone; packets for it are lost until it is back")
        elif now.index != before.index:
            self._write(f"{place}: {self._attached(port)}")
        elif now.running != before.running:
            state = "up again" if now.running else "down; packets for it are lost"
            self._write(f"{place}: the interface is {state}")

    def _attached(self, port: int) -> str:
        try:
            self._attach(port)
        except PacketLoopError as error:
            return f"the interface is back and cannot be attached: {error}; restart the switch"
        return "the interface is back, and is attached again"
