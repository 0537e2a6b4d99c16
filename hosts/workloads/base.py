"""The interface of a kind of workload, as agents see it."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, NamedTuple, Protocol

from numpy.typing import NDArray


class InputKey(NamedTuple):
    """The name of one worker's input in one round. rank: the worker's rank in the whole job. If a
    session leaves members out, no rank and no input changes."""

    seed: int
    job: int
    rank: int
    round: int


class Work(Protocol):
    """The work of each worker of a job in a round: a frozen dataclass whose fields are JSON values.

    in_place: whether a result may be put where the input is; it then has the input's dtype and
    length.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    in_place: ClassVar[bool]

    @property
    def elements(self) -> int:
        """The largest number of values in an input."""

    @property
    def dtype(self) -> str:
        """The type of the values: int32, float32 or float16."""

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns one worker's input of one round. The array is flat, contiguous and aligned. It is
        of `dtype`, or structured if the input has more than values."""

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Returns an array for the result of this input. Every page of its memory has been written
        to."""
