"""The keys of a scenario that are the parameter server's own."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.testbed.schema.key import keys_list
from agglab.testbed.schema.kinds import Pattern


@dataclass(frozen=True)
class PsKeys:
    """The keys of the section `ps`."""

    servers: tuple[str, ...] = keys_list(
        "servers",
        Pattern(),
        "hosts, by name or pattern, that only run servers; without any, a server runs beside "
        "each worker",
    )
