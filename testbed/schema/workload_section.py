"""Declares the keys of the section `workload`: what the workers of a job do."""

from __future__ import annotations

from dataclasses import dataclass

from agglab.hosts.workloads import KINDS as WORKLOADS
from agglab.hosts.workloads.calls import APPLICATIONS
from agglab.hosts.workloads.embedding import ROW_ORDERS
from agglab.hosts.workloads.push_pull import SOURCES
from agglab.testbed.schema.key import key, keys_list
from agglab.testbed.schema.kinds import (
    AutoOr,
    Choice,
    Flag,
    Fraction,
    Number,
    Share,
    Text,
    Whole,
    duration,
    rate,
    size,
)
from agglab.testbed.schema.models import PEAK_FLOPS
from agglab.testbed.schema.network_sections import SLOTS_MAX


@dataclass(frozen=True)
class Workload:
    kind: str = key(
        "kind",
        Choice(tuple(WORKLOADS)),
        "allreduce",
        "what the workers do. sparse: an all-reduce in which most blocks of the tensors are zero; "
        "embedding: one in which most rows of a gradient are zero, because a batch has few words; "
        "push_pull: pushes and pulls of values under keys, of which each worker has others; calls: "
        "what an application calls; sgd, async_sgd: training of a small model; torch: a PyTorch "
        "script of your own (training.md)",
    )
    script: str = key(
        "script",
        Text("the path of a .py file", r"(|[^\x00\n]+\.py)", 1000),
        "",
        "`torch`: a training script, relative to the scenario's folder or to the current "
        "folder; each worker runs it once in each round",
    )
    arguments: tuple[str, ...] = keys_list(
        "arguments", Text("one argument", r"[^\x00\n]*", 1000), "`torch`: arguments for the script"
    )
    model: str = key(
        "model",
        Text("a name, or path/to/model.yaml", r"[^\x00\n]+", 1000),
        "resnet50",
        "`layers`: the table of layers: one that comes with Agglab, or your own file",
    )
    accelerator: str = key(
        "accelerator",
        Choice(tuple(PEAK_FLOPS)),
        "v100",
        "`layers`: the processor that computes at each worker; its peak in float32 determines "
        "the times",
    )
    stands_for_bps: int | None = key(
        "stands_for",
        AutoOr(rate(), "the slowest link's own rate"),
        None,
        "`layers`: the rate that the slowest link represents; computing is slowed down by the "
        "ratio of this rate to the link's own",
    )
    scale: float = key(
        "scale",
        Number(1, 1e9),
        1.0,
        "`layers`: the sizes of layers and buckets, and the times, are divided by this",
    )
    bucket_bytes: int = key(
        "bucket",
        size(low="4B"),
        25 * 2**20,
        "`layers`: gradients are summed in buckets of this size in bytes, before `scale` "
        "divides it",
    )
    priorities: bool = key(
        "priorities",
        Flag(),
        False,
        "`layers`: whether, of the buckets that are ready, the one nearest to the input is "
        "summed first; layers that are larger than a bucket are then cut",
    )
    application: str = key(
        "application",
        Choice(APPLICATIONS),
        "wordcount",
        "`calls`: the application: `wordcount` counts the words of Python's standard library, "
        "`lock` runs critical sections under locks",
    )
    density: float = key(
        "density", Share(), 0.1, "`sparse`: the share of a tensor's blocks that are not zero"
    )
    block: int = key("block", Whole(1, 1_000_000), 256, "`sparse`: number of values in a block")
    overlap: str = key(
        "overlap",
        Choice(("none", "random", "full")),
        "random",
        "`sparse`: which blocks are not zero: different ones at each worker as far as possible "
        "(`none`), independently chosen ones (`random`), or the same at all workers (`full`)",
    )
    width: int = key("width", Whole(1, 65_536), 64, "`embedding`: number of values in a row")
    tokens: int = key(
        "tokens",
        Whole(1, 1_000_000),
        512,
        "`embedding`: number of words in a worker's batch, which come from the source text of "
        "Python's own standard library; each word has a row",
    )
    row_order: str = key(
        "row_order",
        Choice(ROW_ORDERS),
        "rank",
        "`embedding`: which row a word has: `rank` gives the commonest word the first row, "
        "`hashed` uses the hash of the word",
    )
    source: str = key(
        "source",
        Choice(SOURCES),
        "zipf",
        "`push_pull`: where keys come from: a Zipf distribution, or the identifiers in the "
        "source text of Python's own standard library",
    )
    exponent: float = key(
        "exponent",
        Number(0, 10),
        1.1,
        "`zipf`: the key of rank r is drawn with a probability in proportion to 1/r to the "
        "power of this number",
    )
    vocabulary: int = key(
        "vocabulary", Whole(1, 100_000_000), 16_384, "`zipf`: number of different keys"
    )
    drift: int = key(
        "drift",
        Whole(0, 10_000),
        0,
        "`zipf`: number of rounds after which every rank stands for another key; 0: never",
    )
    features: int = key(
        "features",
        Whole(1, 1_000_000),
        1024,
        "`async_sgd`: number of words in the vocabulary; `sgd`: number of values in an example",
    )
    classes: int = key(
        "classes",
        Whole(2, 1000),
        8,
        "`async_sgd`, `sgd`: number of classes of documents or examples",
    )
    samples: int = key(
        "samples", Whole(1, 1_000_000), 512, "`async_sgd`: number of documents at each worker"
    )
    batch: int = key(
        "batch",
        Whole(1, 10_000),
        4,
        "`async_sgd`, `sgd`: number of documents or examples that a worker uses in a step",
    )
    learning_rate: float = key(
        "learning_rate",
        Number(0.0001, 100.0),
        0.05,
        "learning rate. `async_sgd`: how far a word of a short document moves a weight; `sgd`: the "
        "factor of the mean gradient",
    )
    compute_s: float = key(
        "compute",
        duration("1us", "60s"),
        0.02,
        "computing time of a step. `async_sgd`: its mean; each step takes between half and one and "
        "a half times as long; `sgd`: the time before its gradient is ready",
    )
    steps: int = key(
        "steps", Whole(1, 100_000), 50, "`sgd`: number of steps in a training, which is one round"
    )
    goal: float = key(
        "goal",
        Fraction(),
        0.9,
        "`sgd`: the accuracy for which the time to reach it is measured",
    )
    hidden: int = key("hidden", Whole(1, 100_000), 64, "`sgd`: number of units in the hidden layer")
    updates: int = key(
        "updates",
        Whole(1, 100_000),
        200,
        "`async_sgd`: number of committed updates after which a round ends",
    )
    time_s: float | None = key(
        "time",
        AutoOr(duration("1ms"), "when all updates are committed"),
        None,
        "`async_sgd`: a round ends after this time at the latest, counted from its first request",
    )
    elements: int = key(
        "elements",
        Whole(1, 1_000_000_000),
        1_000_000,
        "number of values in each worker's tensor; for `push_pull`, number of keys that each "
        "worker draws in a round, and pushes once each; for `torch`, the largest all-reduce, "
        "into which larger ones are cut",
    )
    dtype: str = key(
        "dtype",
        Choice(("float32", "int32", "float16", "bfloat16")),
        "float32",
        "type of the values; sums of int32 are exact, those of float16 and bfloat16 are exact and "
        "then rounded",
    )
    rounds: int = key("rounds", Whole(1, 10_000), 3, "number of rounds, one after the other")
    warmup: int = key(
        "warmup",
        Whole(0, 1000),
        0,
        "how many of the first rounds are run and verified but not counted in any time",
    )
    worker: str = key(
        "worker",
        Text("module:Class, or path/to/file.py:Class", r"(|[^\x00\n:]+:[A-Za-z_]\w*)", 1000),
        "",
        "a worker class of your own (own-systems.md), relative to the scenario's folder or to "
        "the current folder",
    )
    window: int | None = key(
        "window",
        AutoOr(
            Whole(1, SLOTS_MAX),
            "10 ms of frames at the slowest link's rate, more if delays make a round trip longer "
            "than 5 ms, from 16 to all slots; on BMv2 at most 48",
        ),
        None,
        "number of chunks that a worker keeps in flight",
    )
    give_up_s: float = key(
        "give_up",
        duration("100ms"),
        10.0,
        "time without any received packet after which a worker ends the round and reports "
        "what is missing",
    )
    first_timeout_s: float | None = key(
        "first_timeout",
        AutoOr(
            duration("10us", "1s"),
            "20 times as long as a window takes on the link, from 20 to 100 ms, but at least twice "
            "the round trip that the links' delays cause",
        ),
        None,
        "time without any answer after which a worker sends packets again, as long as it has not "
        "measured a round trip. A short time repairs early losses sooner; if it is shorter than a "
        "round trip, or than workers start apart, packets are sent again for nothing",
    )
    on_failure: str = key(
        "on_failure",
        Choice(("fail", "restart", "survivors")),
        "fail",
        "what happens to a round that cannot end: `fail` ends the job; `restart` runs the "
        "round again; `survivors` runs it again without the workers that have died",
    )
    restarts_max: int = key(
        "restarts", Whole(0, 1000), 10, "how many times a job may run rounds again before it fails"
    )
