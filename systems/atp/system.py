"""The system ATP: the values and methods that the testbed asks of a System."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.systems.pooling.base import Pooling
from agglab.systems.pooling.keys import PoolingKeys


@dataclass(frozen=True)
class AtpKeys(PoolingKeys):
    """The keys of the section `atp`."""


class Atp(Pooling):
    name = "atp"
    summary = (
        "slots that all jobs share, chosen by a hash; a server sums the chunks that find no "
        "free slot"
    )
    choose_when = (
        "Take it where many jobs share one switch and no job should reserve slots: a job takes "
        "the slots that are free, and a server sums what does not fit."
    )
    options = AtpKeys


SYSTEM = Atp
