"""The `bmv2` target: simple_switch_grpc, or simple_switch if only that is installed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from agglab.testbed.base.command_lines import peer_remedy
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.traffic_counters import SwitchStatistics
from agglab.testbed.real.packet_sockets import take_drops
from agglab.testbed.real.process import NodeProcess
from agglab.testbed.real.targets.base import (
    Control,
    SwitchSetting,
    grpc_address,
    port_arguments,
    unix_path,
)
from agglab.testbed.real.targets.thrift import THRIFT_PORT, ThriftControl
from p4native.bmv2.thrift_cli import PROGRAM as CLI

GRPC, THRIFT = "simple_switch_grpc", "simple_switch"
REMEDY = f"{peer_remedy('p4lang-bmv2', 'BMv2')}, or leave switch.target at native"
QUEUES = {
    "input_packets": 1024,
    "egress_packets_per_port": 64,
    "resubmit_packets": 1024,
    "output_packets": 128,
}
"""The sizes of BMv2's queues. There is an option only for the egress queue, and a run does not use
it."""
HELP_S = 20.0
LIKELY_CAUSES = {
    "Could not bind": "another program uses the switch's Thrift port",
    "Json::": "the compiled program is not JSON",
    "required by switch target": "the compiled program is not BMv2 JSON for the v1model "
    "architecture",
    "cannot be opened": "the compiled program cannot be read",
    "first phase of device update": "BMv2 cannot load the program; set switch.log to debug to "
    "see why",
    "Unexpected error in RPC handling": "the compiled program is not JSON",
    "JSON version": "the program was compiled for another version of BMv2",
    "Add port operation failed": "an interface of the switch cannot be opened",
    "Operation not permitted": "the run is not root, or its container forbids packet sockets",
    "error while loading shared libraries": "the dynamic linker does not find BMv2's libraries",
    "No module named": f"Python packages that {CLI} needs are not installed",
    "Could not connect": "the switch ended after it had started, or another program uses its "
    "Thrift port",
}


def installed() -> str:
    """Returns GRPC or THRIFT, whichever program is on PATH, and GRPC if both are. Raises
    MachineLacks with the name of the missing program."""
    if shutil.which(GRPC):
        return GRPC
    if not shutil.which(THRIFT):
        raise MachineLacks(f"BMv2 ({GRPC} or {THRIFT}), which switch.target asks for", REMEDY)
    if not shutil.which(CLI):
        raise MachineLacks(f"{CLI}, which fills the tables of BMv2's {THRIFT}", REMEDY)
    return THRIFT


@dataclass(frozen=True)
class Bmv2Target:
    """BMv2 with compiled JSON and its P4Info. log: a log level of BMv2, or `off`. Without a log,
    BMv2 is several times faster."""

    program_json: Path
    p4info: Path
    log: str = "off"
    _drops: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def command(self, setting: SwitchSetting) -> list[str]:
        program = installed()
        command = [program, *port_arguments(setting), "--device-id", str(setting.device_id)]
        if self.log != "off":
            command += ["--log-console", "-L", self.log]
        if setting.pcap_dir is not None:
            command += ["--pcap", str(setting.pcap_dir)]
        if "--notifications-addr" in _help(program):
            # Its default is a socket in /tmp, the same for every run.
            command += ["--notifications-addr", f"ipc://{unix_path(setting, 'notifications')}"]
        if program == GRPC:
            return [*command, "--no-p4", "--", "--grpc-server-addr", grpc_address(setting)]
        return [*command, "--thrift-port", str(THRIFT_PORT), str(self.program_json)]

    def control(self, setting: SwitchSetting) -> Control:
        if installed() == THRIFT:
            return ThriftControl(setting, self.program_json)
        # Imported here: gRPC costs 0.2 s, which validating a scenario need not pay.
        from agglab.testbed.real.targets.p4runtime import P4RuntimeControl

        return P4RuntimeControl(setting, self.program_json, self.p4info)

    def likely_cause(self, log_tail: list[str]) -> str:
        text = "\n".join(log_tail)
        return next((cause for sign, cause in LIKELY_CAUSES.items() if sign in text), "")

    def statistics(self, setting: SwitchSetting, process: NodeProcess) -> SwitchStatistics:
        """Returns the statistics. BMv2 does not count its own drops. The kernel counts those of its
        packet sockets, and agglab.testbed.judge.queue_losses derives what can be known about its
        queues.
        """
        known = self._drops.get(process.pid, 0) + take_drops(process.pid)
        self._drops[process.pid] = known
        return SwitchStatistics(setting.name, process.cpu_s(), known, {})


TARGET = Bmv2Target


def facts() -> dict[str, object]:
    """Returns what manifest.json says about BMv2. Raises MachineLacks if it is not installed."""
    program = installed()
    path = shutil.which(program)
    version = subprocess.run([program, "--version"], capture_output=True, text=True)
    return {"program": path, "version": version.stdout.strip(), "queues": QUEUES}


@lru_cache
def _help(program: str) -> str:
    done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=HELP_S)
    return done.stdout + done.stderr
