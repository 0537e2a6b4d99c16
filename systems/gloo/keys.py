"""The keys of a scenario that are Gloo's own."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.testbed.schema.key import key
from agglab.testbed.schema.kinds import Text

DEFAULT_CONTROL = "cubic"


@dataclass(frozen=True)
class GlooKeys:
    """The keys of the section `gloo`."""

    congestion_control: str = key(
        "congestion_control",
        Text("a name in net.ipv4.tcp_available_congestion_control", r"[a-z0-9_-]+", 15),
        DEFAULT_CONTROL,
        "TCP congestion control: cubic (Linux's default), reno, bbr, or another that the "
        "kernel supports",
    )
