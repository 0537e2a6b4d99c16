"""The workload `torch`: a user's own training script, whose all-reduces the agent performs. This
module does not import PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads.base import InputKey


@dataclass(frozen=True)
class Torch:
    """One run of a training script (base.Work). script: the path of the script. arguments: its
    command-line arguments. elements: the largest number of values in one reduction; larger tensors
    are reduced in parts. dtype: a type of 16 bits that the system takes besides float32 and int32,
    or float32 if there is none."""

    kind: ClassVar = "torch"
    in_place: ClassVar = False
    elements: int
    script: str
    arguments: Sequence[str] = ()
    dtype: str = "float32"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", tuple(self.arguments))  # JSON makes lists of them

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns an empty array, because the script computes a worker's inputs itself."""
        return np.zeros(0, np.float32)

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.zeros(0, np.float32)
