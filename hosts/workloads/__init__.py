"""The kinds of workload, each in one module. A kind defines the inputs and the room for results of
a job's workers, for every system. testbed/scenario/workloads/ has the testbed's part of each kind.
Of the rest of `hosts`, these modules import only bfloat16.py and tensors.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agglab.hosts.workloads.async_sgd import AsyncSgd
from agglab.hosts.workloads.base import InputKey, Work
from agglab.hosts.workloads.calls import Calls
from agglab.hosts.workloads.dense import Dense
from agglab.hosts.workloads.embedding import Embedding
from agglab.hosts.workloads.layers import Layers
from agglab.hosts.workloads.push_pull import PushPull
from agglab.hosts.workloads.sgd import Sgd
from agglab.hosts.workloads.sparse import Sparse
from agglab.hosts.workloads.torch import Torch

KINDS: Mapping[str, type[Work]] = {
    each.kind: each
    for each in (Dense, Sparse, Embedding, Layers, Sgd, PushPull, Calls, AsyncSgd, Torch)
}
"""The kinds of workload, by their names in scenarios and agents' configurations."""

Iterated = Layers | Sgd
"""The kinds of workload whose round consists of several all-reduces, one after the other
(hosts/iteration.py)."""

PLAIN_DTYPES = ("int32", "float32", "float16")
DTYPES = (*PLAIN_DTYPES, "bfloat16")
"""The types of values. NumPy computes with the plain ones."""

__all__ = [
    "KINDS",
    "PLAIN_DTYPES",
    "AsyncSgd",
    "Calls",
    "Dense",
    "Embedding",
    "InputKey",
    "Iterated",
    "Layers",
    "PushPull",
    "Sgd",
    "Sparse",
    "Torch",
    "Work",
    "description",
    "read",
]


def description(work: Work) -> dict[str, Any]:
    """Returns the description of a work, as JSON values, that agents receive in their
    configuration."""
    return {"kind": work.kind, **asdict(work)}


def read(given: Mapping[str, Any]) -> Work:
    """Returns the work that a result of `description` stands for. Raises ValueError with a
    message of one line."""
    if not isinstance(given, Mapping):
        raise ValueError("not an object")
    own = dict(given)
    kind = own.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"kind: {kind!r} is none of {', '.join(KINDS)}")
    try:
        work = KINDS[kind](**own)
    except TypeError as error:
        raise ValueError(f"{kind}: {error}") from None
    if type(work.elements) is not int or work.elements < 0:
        raise ValueError(f"elements: {work.elements!r} is not a whole number of 0 or more")
    if work.dtype not in DTYPES:
        raise ValueError(f"dtype: {work.dtype!r} is none of {', '.join(DTYPES)}")
    return work
