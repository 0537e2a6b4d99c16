"""The `bridge` target: the Linux kernel's bridge instead of a P4 switch, for systems whose switches
only forward. It runs no P4 program. From the entries it uses only the port of each MAC address, and
it sends nothing to unknown addresses."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from agglab.testbed.base.command_lines import program_remedy
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.kernel import network_namespace
from agglab.testbed.base.traffic_counters import SwitchStatistics
from agglab.testbed.real.process import NodeProcess
from agglab.testbed.real.targets.base import Control, SwitchSetting
from agglab.testbed.systems.plan import Entries
from p4native.bmv2.errors import ControlError

PROGRAM = "bridge"
INTERFACE = "bridge0"
MADE_OF = "mcast_snooping 0 stp_state 0"
PORT = "learning off flood off mcast_flood off bcast_flood off"
IDLE = ("sleep", "infinity")
"""The command of a process that stands for the bridge, which itself is not a process. It can be
watched and killed as a switch can."""


@dataclass(frozen=True)
class BridgeTarget:
    """The kernel's bridge as a target. It ignores `log` and the program, which is compiled only
    because other targets need it."""

    program_json: Path
    p4info: Path
    log: str = "off"

    def command(self, setting: SwitchSetting) -> list[str]:
        return list(IDLE)

    def control(self, setting: SwitchSetting) -> Control:
        return BridgeControl(setting)

    def likely_cause(self, log_tail: list[str]) -> str:
        return ""

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics:
        """Returns the statistics, which contain little: the kernel forwards in the sender's
        processor time, and links count what their queues refuse."""
        return SwitchStatistics(setting.name, 0.0, 0, {})


class BridgeControl:
    """The Control (targets.base) of a bridge. It uses iproute2 in the switch's namespace."""

    interface = "iproute2"

    def __init__(self, setting: SwitchSetting) -> None:
        self._pid, self._ports = setting.namespace_pid, setting.ports
        self._made = False

    def answers(self, within_s: float) -> bool:
        """Returns true, because the kernel's bridge is ready immediately."""
        return True

    def begin(self) -> None:
        ports = [
            line
            for name in self._ports.values()
            for line in (
                f"link set dev {name} master {INTERFACE}",
                f"link set dev {name} type bridge_slave {PORT}",
            )
        ]
        self._batch("ip", [f"link add name {INTERFACE} type bridge {MADE_OF}", *ports])
        self._made = True
        self._batch("ip", [f"link set dev {INTERFACE} up"])

    def reset(self) -> None:
        self.close()
        self.begin()

    def change(self, old: Entries, new: Entries) -> None:
        before, after = dict(_places(old)), dict(_places(new))
        lines = [
            f"fdb del {mac} dev {self._ports[before[mac]]} master"
            for mac in before
            if before[mac] != after.get(mac)
        ]
        lines += [
            f"fdb add {mac} dev {self._ports[port]} master static"
            for mac, port in after.items()
            if port != before.get(mac)
        ]
        self._batch(PROGRAM, lines)

    def read_counter(self, counter: str) -> dict[int, tuple[int, int]]:
        raise ValueError(f"a bridge has no counter {counter}")

    def read_register(self, register: str, indices: Iterable[int]) -> list[int]:
        raise ValueError(f"a bridge has no register {register}")

    def close(self) -> None:
        """Ends the session and removes the bridge. The kernel forwards its frames, so killing a
        process does not stop it."""
        if self._made:
            self._made = False
            with contextlib.suppress(ControlError):
                self._batch("ip", [f"link del dev {INTERFACE}"])

    def _batch(self, program: str, lines: Sequence[str]) -> None:
        if not lines:
            return
        with network_namespace(self._pid):
            done = subprocess.run(
                [program, "-batch", "-"],
                input="\n".join(lines) + "\n",
                capture_output=True,
                text=True,
            )
        if done.returncode:
            raise ControlError(f"{program}: {' '.join(done.stderr.split())}")


def _places(entries: Entries) -> Iterable[tuple[str, int]]:
    """Yields (MAC address, port) of the entries that say at which port a host is."""
    for entry in entries.tables:
        if entry.table == "macs":
            number = entry.match["dst"]
            assert isinstance(number, int), "an exact match key"
            yield (
                ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big")),
                int(entry.parameters["port"]),
            )


TARGET = BridgeTarget


def installed() -> None:
    """Raises MachineLacks if iproute2's `bridge` is not on PATH."""
    if which(PROGRAM) is None:
        raise MachineLacks(f"the program {PROGRAM}", program_remedy("apt-get install iproute2"))


def facts() -> dict[str, object]:
    """Returns the path of iproute2's `bridge`. The bridge itself belongs to the kernel, whose
    version the manifest has."""
    installed()
    return {"program": which(PROGRAM)}
