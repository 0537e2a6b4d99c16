"""ATP's answers to what the testbed asks of a system."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.testbed.systems.pooling.base import Pooling
from agglab.testbed.systems.pooling.keys import PoolingKeys


@dataclass(frozen=True)
class AtpKeys(PoolingKeys):
    """The section `atp`."""


class Atp(Pooling):
    name = "atp"
    summary = "slots that all jobs share, found by a hash; a server sums what finds none"
    choose_when = (
        "Take it where many jobs share one switch and none may keep slots for itself: a job takes "
        "what is free, and a server takes what does not fit."
    )
    options = AtpKeys
    endpoints = "agglab.hosts.systems.atp"
