"""The interface that every kind of workload has for agents."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, NamedTuple, Protocol

from numpy.typing import NDArray


class InputKey(NamedTuple):
    """The key that identifies one worker's input in one round. rank: the worker's rank in the whole
    job, so that inputs do not change when a session leaves members out."""

    seed: int
    job: int
    rank: int
    round: int


class Work(Protocol):
    """The interface of a kind of workload: what each worker of a job does in a round. It is a
    frozen dataclass whose fields are JSON values.

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
        """The type of the values: int32, float32, float16 or bfloat16."""

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns one worker's input of one round. The array is flat, contiguous and aligned. It is
        of `dtype`, or structured if the input consists of more than values."""

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Returns an array for the result of this input. Every page of its memory has been written
        to."""
