"""Gloo's workers, over TCP: docs/systems/gloo.md. Settings: peers ([address, port] of all members,
by rank), session, chunk_bytes, congestion_control."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agglab.hosts.part import Hooks, Part

if TYPE_CHECKING:
    from agglab.hosts.systems.gloo.worker import GlooReducer


def reducer(part: Part, hooks: Hooks) -> GlooReducer:
    """Returns one worker, with a transport of its own. Only this function imports PyTorch."""
    from agglab.hosts.systems.gloo.worker import GlooReducer

    return GlooReducer(part, hooks)
