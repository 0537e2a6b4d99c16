"""The interface of a kind of workload, as agents see it."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, NamedTuple, Protocol

from numpy.typing import NDArray


class InputKey(NamedTuple):
    """Names the input of one worker in one round. rank: in the whole job: members that a session
    leaves out change nobody's rank and nobody's input."""

    seed: int
    job: int
    rank: int
    round: int


class Work(Protocol):
    """The work of each worker of a job in a round: a frozen dataclass whose fields are JSON values.

    in_place: a result may be put where the input is, which has its dtype and length.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    in_place: ClassVar[bool]

    @property
    def elements(self) -> int:
        """Values of an input, at most."""

    @property
    def dtype(self) -> str:
        """The type of the values: int32, float32 or float16."""

    def inputs(self, key: InputKey) -> NDArray[Any]:
        """Returns one worker's inputs of one round: flat, contiguous and aligned; of `dtype`, or
        structured where a worker has more than values."""

    def room(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """An array for the result of such an input, each page of which has been touched."""
