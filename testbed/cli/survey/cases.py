"""The cases on which every system is measured. Each is a workload of some kind, and all use the
same network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agglab.testbed.scenario.workloads import KINDS

SCENARIO = """\
name: survey
seed: 1
backend: virtual
topology: {kind: rack, workers: 4, servers: 4}
links: {rate: 100mbit, queue: 2MB}
workload: {elements: 50_000, rounds: 3}
expect: {totals.other_drops: 0}
"""
"""The scenario on which all cases are based. Its queues have room for whatever a system has in
flight, so that all losses are injected."""
LOSS = "1%"
"""Each run is repeated with links that drop a packet with this probability in each direction."""


@dataclass(frozen=True)
class Case:
    """A case, which becomes one table. kind: the kind of the workload. settings: the keys that are
    added to SCENARIO, in the form of `--set`. about: what the table shows. in_tensors: whether
    bytes are shown as multiples of a worker's tensor."""

    kind: str
    title: str
    about: str = ""
    settings: Sequence[str] = ()
    in_tensors: bool = False
    on_page: bool = True
    """Whether the table is in systems/README.md. It is not if inputs differ between machines,
    as the source text of Python's library does."""

    @property
    def asked(self) -> list[str]:
        """All keys that distinguish the case from the other cases."""
        return [f"workload.kind={self.kind}", *self.settings]


WRITTEN = (
    Case(
        "allreduce",
        "Dense all-reduce",
        "Every worker contributes 50,000 floats and receives their sums. If a switch sums, "
        "each link carries the tensor once in each direction, however many workers there are. "
        "Without a switch that sums, each worker has to send and receive almost twice the "
        "tensor, or servers do part of that. With n workers it is 2(n - 1)/n times the tensor.",
        in_tensors=True,
    ),
    Case(
        "sparse_allreduce",
        "Sparse all-reduce",
        "One block in ten of each tensor is not zero; each worker chooses its own blocks at "
        "random. A system that sends only these blocks needs less time and fewer bytes. Any "
        "other system sends the zeros as well, so its numbers are those of the dense tensor.",
        ("workload.density=10%", "workload.block=256", "workload.overlap=random"),
        in_tensors=True,
    ),
    Case(
        "embedding_allreduce",
        "All-reduce of an embedding's gradient",
        "The gradient of an embedding has a row for each word. Only the rows of the words in a "
        "worker's batch are not zero.",
        in_tensors=True,
        on_page=False,
    ),
    Case(
        "layers",
        "Iterations of training",
        "AlexNet at a thousandth of its size, on links that represent 10 Gbit/s. A round is "
        "one iteration, whose passes take 2.1 ms. Gradients are summed in buckets during the "
        "passes. What an iteration takes beyond the 2.1 ms is communication that the passes do "
        "not hide.",
        (
            "workload.model=alexnet",
            "workload.accelerator=p100",
            "workload.stands_for=10gbit",
            "workload.scale=1000",
        ),
    ),
    Case(
        "sgd",
        "Steps of training",
        "A small network of 2,762 parameters learns. A round has 20 steps, and each step sums one "
        "gradient of every worker. A gradient is only a few packets, so round trips count as much "
        "as bytes.",
        (
            *("workload.features=32", "workload.steps=20", "workload.compute=1ms"),
            *("workload.batch=16", "workload.learning_rate=0.5", "workload.classes=10"),
        ),
    ),
    Case(
        "push_pull",
        "Pushes and pulls of keys",
        "Each worker draws 20,000 keys, some of them far more often than others (Zipf's law), "
        "pushes a value under each different key, and pulls the sums of its own keys. A switch "
        "has no room for all keys, so it matters which keys it sums and who sums the others.",
        ("workload.elements=20_000",),
    ),
    Case(
        "calls",
        "Calls",
        "Each worker enters 50 critical sections, one after the other, each under a lock for "
        "which other workers compete. Every step waits for an answer, so times consist of "
        "round trips, and each loss costs a whole timeout, whatever the rate of the links.",
        ("workload.application=lock", "workload.elements=50"),
    ),
    Case(
        "async_sgd",
        "Asynchronous training",
        "Four workers train one model, each at its own pace, until 60 updates are committed. A "
        "round is the whole training, computing included. `exact` says that the model is the "
        "one that results from applying the log of its updates in order.",
        ("workload.rounds=1", "workload.updates=60"),
    ),
)


def cases() -> list[Case]:
    """Returns at least one case for each kind of workload, in the order of the kinds."""
    kinds = [kind for kind, known in KINDS.items() if "virtual" in known.clocks]
    own = {kind: [case for case in WRITTEN if case.kind == kind] for kind in kinds}
    return [case for kind in kinds for case in own[kind] or [Case(kind, f"`{kind}`")]]
