"""The system Gloo, whose workers use TCP (README.md).

Settings: peers ([address, port] of all members, by rank), session, chunk_bytes, congestion_control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agglab.hosts.part import Hooks, Part

if TYPE_CHECKING:
    from agglab.systems.gloo.worker import GlooReducer


def reducer(part: Part, hooks: Hooks) -> GlooReducer:
    """Returns the reducer of one worker. Its packets are sent by Gloo, so there is no endpoint.
    Only this function imports PyTorch."""
    from agglab.systems.gloo.worker import GlooReducer

    return GlooReducer(part, hooks)
