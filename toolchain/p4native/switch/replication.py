"""The class Replication, which sets multicast groups and clone sessions. These say where copies of
a packet go."""

from __future__ import annotations

from collections.abc import Sequence

from p4native.switch.errors import PipelineError
from p4native.switch.library import Instance, Replica, array_of, check


class Replication:
    """The multicast groups and clone sessions of one running program. `pipeline.replication` is an
    instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Sets the copies that a multicast group makes, as (port, replication id). An empty list
        deletes the group."""
        result = self._instance.call(
            "pl_multicast_group", group % (1 << 32), *self._replicas(replicas)
        )
        check(result, f"multicast group {group}")

    def set_clone_session(
        self, session: int, replicas: Sequence[tuple[int, int]], max_bytes: int = 0
    ) -> None:
        """Sets the copies that a clone session makes, as (port, replication id). An empty list
        deletes the session. max_bytes: the length to which copies are cut, 0 for no limit."""
        result = self._instance.call(
            "pl_clone_session", session % (1 << 32), *self._replicas(replicas), max_bytes
        )
        check(result, f"clone session {session}")

    def _replicas(self, replicas: Sequence[tuple[int, int]]) -> tuple[object, int]:
        for port, rid in replicas:
            if not (0 <= port < 1 << 16 and 0 <= rid < 1 << 16):
                raise PipelineError(f"port and rid have 16 bits, not {port} and {rid}")
        array = array_of(Replica, len(replicas))(*[Replica(port, rid) for port, rid in replicas])
        return array, len(replicas)
