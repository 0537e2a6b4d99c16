"""The `native` target: Agglab's own switch, `python -m p4native.switch`."""

from __future__ import annotations

import json
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agglab.testbed.base import command_lines
from agglab.testbed.base.traffic_counters import SwitchStatistics
from agglab.testbed.real.process import NodeProcess
from agglab.testbed.real.targets.base import (
    Control,
    SwitchSetting,
    grpc_address,
    port_arguments,
    unix_path,
)

INSTALL = command_lines.setup() or command_lines.pip_install("--force-reinstall agglab")
STATISTICS_TIMEOUT_S = 10.0
LIKELY_CAUSES = {
    "No such device": "an interface of the switch does not exist",
    "Permission denied": "the run is not root, or a folder is not writable",
    "Operation not permitted": "the run is not root, or its container forbids packet sockets",
    "ModuleNotFoundError": f"the virtual environment is incomplete: {INSTALL}",
    "No space left on device": "the disk that holds the cache of compiled programs is full",
    "Address already in use": "another process serves at the switch's address",
}


@dataclass(frozen=True)
class NativeTarget:
    """Our own switch (`python -m p4native.switch`) with compiled BMv2 JSON and its P4Info (text
    protobuf).

    log: a log level; `off` leaves the choice to the switch.
    """

    program_json: Path
    p4info: Path
    log: str = "off"

    def command(self, setting: SwitchSetting) -> list[str]:
        command = [sys.executable, "-m", "p4native.switch", *port_arguments(setting)]
        command += ["--device-id", str(setting.device_id), "--no-p4", "--log-console"]
        if self.log != "off":
            command += ["-L", self.log]
        command += ["--stats-socket", str(unix_path(setting, "stats"))]
        command += [word for drop in setting.drops for word in drop.words]
        if setting.pcap_dir is not None:
            command += ["--pcap", str(setting.pcap_dir)]
        return [*command, "--", "--grpc-server-addr", grpc_address(setting)]

    def control(self, setting: SwitchSetting) -> Control:
        # Imported here: gRPC costs 0.2 s, which validating a scenario need not pay.
        from agglab.testbed.real.targets.p4runtime import P4RuntimeControl

        return P4RuntimeControl(setting, self.program_json, self.p4info)

    def likely_cause(self, log_tail: list[str]) -> str:
        text = "\n".join(log_tail)
        return next((cause for sign, cause in LIKELY_CAUSES.items() if sign in text), "")

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics:
        details = _read_json(unix_path(setting, "stats")) if process.poll() is None else {}
        drops = sum(int(port["ring_drops"]) for port in details.get("ports", {}).values())
        cpu_s = float(details.get("process_cpu_s", process.cpu_s()))
        return SwitchStatistics(setting.name, cpu_s, drops, details)


def _read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object that the statistics socket sends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(STATISTICS_TIMEOUT_S)
        connection.connect(str(path))
        with connection.makefile("rb") as stream:
            answer: dict[str, Any] = json.load(stream)
    return answer


TARGET = NativeTarget


def installed() -> None:
    """Does nothing, because the switch comes with Agglab."""


def facts() -> dict[str, object]:
    """Returns an empty mapping, because the manifest's own hashes and versions identify the
    switch."""
    return {}
