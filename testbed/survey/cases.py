"""What every system is measured on: one network, and a workload of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agglab.testbed.workloads import KINDS

SCENARIO = """\
name: survey
seed: 1
backend: virtual
topology: {kind: rack, workers: 4, servers: 4}
links: {rate: 100mbit, queue: 2MB}
workload: {elements: 50_000, rounds: 3}
expect: {totals.other_drops: 0}
"""
"""Under all cases. Queues hold whatever a system has in flight: all losses are injected."""
LOSS = "1%"
"""With which each run is repeated: the chance that a link drops a packet, in each direction."""


@dataclass(frozen=True)
class Case:
    """One table. kind: of workload; settings: the keys laid over SCENARIO, as `--set` takes them;
    about: what the table shows. in_tensors: bytes are told as multiples of a worker's tensor, where
    each worker has one."""

    kind: str
    title: str
    about: str = ""
    settings: Sequence[str] = ()
    in_tensors: bool = False
    on_page: bool = True
    """Not where inputs differ between machines, as the source text of Python's library does."""

    @property
    def asked(self) -> list[str]:
        """All keys that tell it from other cases."""
        return [f"workload.kind={self.kind}", *self.settings]


WRITTEN = (
    Case(
        "allreduce",
        "Dense all-reduce",
        "Every worker brings 50,000 floats and receives their sums. A switch that sums sends each "
        "link the tensor once in each direction, however many workers there are; without one, each "
        "worker has to send and receive twice the tensor but for a share that shrinks with the "
        "number of workers (1.5 times with four), or servers carry the difference.",
        in_tensors=True,
    ),
    Case(
        "sparse_allreduce",
        "Sparse all-reduce",
        "One block in ten of each tensor is not zero, and each worker has chosen its own. A system "
        "that sends such blocks alone needs less time and fewer bytes; one that does not know of "
        "them sends zeros, and its row is that of the dense tensor.",
        ("workload.density=10%", "workload.block=256", "workload.overlap=random"),
        in_tensors=True,
    ),
    Case(
        "embedding_allreduce",
        "All-reduce of an embedding's gradient",
        "Of the rows of an embedding's matrix, a batch of words touches those of its words.",
        in_tensors=True,
        on_page=False,
    ),
    Case(
        "layers",
        "Iterations of training",
        "AlexNet at a thousandth of its size, on links that stand for 10 Gbit/s: a round is an "
        "iteration, whose passes take 2.1 ms. Gradients are summed meanwhile, in buckets; the rest "
        "of the time is what the passes do not hide of that.",
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
        "A network of 2,762 parameters learns, 20 steps a round: each step sums one gradient of "
        "every worker, which is a few packets, so that round trips count as much as bytes.",
        (
            *("workload.features=32", "workload.steps=20", "workload.compute=1ms"),
            *("workload.batch=16", "workload.learning_rate=0.5", "workload.classes=10"),
        ),
    ),
    Case(
        "push_pull",
        "Pushes and pulls of keys",
        "Each worker draws 20,000 keys, some of them far more often than others (Zipf's law), "
        "pushes a value under each different one, and pulls the sums of its own. A switch has no "
        "room for all keys: what matters is which of them it sums, and who sums the others.",
        ("workload.elements=20_000",),
    ),
    Case(
        "calls",
        "Calls",
        "Each worker enters 50 critical sections, one after the other, each under a lock that "
        "others want, too. Every step waits for an answer, so that times are round trips and "
        "losses cost whole timeouts, whatever the rate of the links.",
        ("workload.application=lock", "workload.elements=50"),
    ),
    Case(
        "async_sgd",
        "Asynchronous training",
        "Four workers train one model, each at its own pace, until 60 updates of it are "
        "committed. A round is the whole of that, computing included; `exact` says that the model "
        "is the one that the log of its updates leads to.",
        ("workload.rounds=1", "workload.updates=60"),
    ),
)


def cases() -> list[Case]:
    """One for each kind of workload at least, in the order of the kinds. Of these docs/ has what is
    `on_page`."""
    kinds = [kind for kind, known in KINDS.items() if "virtual" in known.clocks]
    own = {kind: [case for case in WRITTEN if case.kind == kind] for kind in kinds}
    return [case for kind in kinds for case in own[kind] or [Case(kind, f"`{kind}`")]]
