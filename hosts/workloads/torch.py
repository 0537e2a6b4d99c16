"""`torch`: a training script of the user's own, whose all-reduces the agent makes. Imports no
PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads.base import InputKey


@dataclass(frozen=True)
class Torch:
    """One run of a script. script: its path. arguments: those of its command line. elements: the
    most values of one reduction; larger tensors are reduced in parts. See also base.Work."""

    kind: ClassVar = "torch"
    in_place: ClassVar = False
    dtype: ClassVar = "float32"
    elements: int
    script: str
    arguments: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", tuple(self.arguments))  # JSON makes lists of them

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns nothing, because the script computes a worker's inputs."""
        return np.zeros(0, self.dtype)

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.zeros(0, self.dtype)
