"""Controls a switch of any target over P4Runtime."""

from __future__ import annotations

from pathlib import Path

from agglab.testbed.real.p4runtime import P4RuntimeClient
from agglab.testbed.real.targets.base import SwitchSetting, grpc_address


class P4RuntimeControl(P4RuntimeClient):
    """The Control over P4Runtime. program_json: compiled BMv2 JSON. p4info: text protobuf."""

    interface = "P4Runtime"

    def __init__(self, setting: SwitchSetting, program_json: Path, p4info: Path) -> None:
        super().__init__(grpc_address(setting), setting.device_id, p4info)
        self._program_json = program_json

    def begin(self) -> None:
        """Wins the mastership election and gives the switch its pipeline (the compiled P4
        program)."""
        self.become_primary()
        self.reset()

    def reset(self) -> None:
        self.set_pipeline(self._program_json.read_bytes())
