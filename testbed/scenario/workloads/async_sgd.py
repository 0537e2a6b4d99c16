"""Implements `async_sgd`: each run trains a model, and its updates are computed from versions that
may be old. To verify a run, its whole history is computed again from the server's log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean, pvariance
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.workloads import AsyncSgd, InputKey, Work
from agglab.hosts.workloads.async_sgd import COMMITTED, LARGE, LOST, SCALE, STALE, UNUSED
from agglab.testbed.scenario.workloads.base import Workload
from agglab.testbed.scenario.workloads.correctness import Verdict, WrongValue
from agglab.testbed.schema.metric import counted, items, measured
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario, TrainingBounds
from agglab.testbed.systems.received_arrays import Received

if TYPE_CHECKING:
    from agglab.testbed.schema.workload_section import Workload as Section

NS_PER_S = 1_000_000_000
CURVE_POINTS = 64
"""The approximate number of a run's models that are evaluated on documents that no worker has
seen."""
Model = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingHistory:
    """What was decided in one run. log: the server's log (hosts.workloads.async_sgd, COMMIT).
    accounts: each member's account of its steps (STEP). changed: for each update in the log, by
    member and step, the numbers of the weights that it changes."""

    log: NDArray[np.void]
    accounts: Sequence[NDArray[np.void]]
    changed: Mapping[tuple[int, int], NDArray[np.int64]]


class AsynchronousTraining(Workload):
    kind = AsyncSgd.kind
    keys = (
        *("features", "classes", "samples", "batch", "learning_rate", "compute_s", "updates"),
        "time_s",
    )
    unread = ("elements", "dtype")
    reduces_elements = False
    metrics = (
        counted(
            "training.updates",
            "updates",
            "updates that were committed; this and the following metrics are means of all runs",
        ),
        measured("training.updates_per_s", "updates/s", "committed per second of a run"),
        counted(
            "training.delay.mean",
            "versions",
            "age of an update when it is committed, in versions: mean of a run",
        ),
        counted("training.delay.variance", "", "variance of that age: mean of a run"),
        counted("training.delay.max", "versions", "the largest of these ages in all runs"),
        counted("training.stale", "updates", "updates that were dropped because they were too old"),
        counted("training.large", "updates", "updates that were dropped because of their norm"),
        counted(
            "training.lost",
            "updates",
            "updates that were lost with a server, or were computed from a lost "
            "version of its model",
        ),
        counted(
            "training.divergence",
            "",
            "the largest norm, of all runs, of the updates that the server "
            "had committed and its replica did not have yet, in units of a "
            "weight; 0 without a replica",
        ),
        counted(
            "training.taken",
            "updates",
            "updates whose commit a server had confirmed to workers before it "
            "died, and that its replica did not have",
        ),
        counted(
            "training.gap",
            "",
            "the norm of these updates, in units of a weight: how far server and "
            "replica were apart, of all runs",
        ),
        counted(
            "training.loss.first",
            "",
            "hinge loss of the first model on documents that no worker has",
        ),
        counted("training.loss.last", "", "hinge loss of the last model"),
        counted("training.loss.mean", "", "mean hinge loss of the models over the time of a run"),
        items(
            "training.curve",
            "[seconds since the start, hinge loss from then on] of the first run's models",
        ),
        items(
            "training.delay.counts", "how many updates of all runs were 0, 1, 2, ... versions old"
        ),
    )

    def work(self, section: Section, workers: int) -> AsyncSgd:
        return AsyncSgd(
            features=section.features,
            classes=section.classes,
            samples=section.samples,
            batch=section.batch,
            rate=max(1, round(section.learning_rate * SCALE)),
            compute_ns=round(section.compute_s * NS_PER_S),
            updates=section.updates,
            time_ns=round((section.time_s or 0.0) * NS_PER_S),
        )

    def depends_on_time(self, work: Work) -> bool:
        return True

    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        work = job.job.work
        assert isinstance(work, AsyncSgd)
        documents = [
            work.inputs(InputKey(resolved.seed, job.job.number, rank, number))
            for rank in job.members
        ]
        held_out = work.held_out(resolved.seed, job.job.number)
        bounds = resolved.system.right_results(resolved, job, None).training
        return judge(work, documents, held_out, job.members, bounds, received)

    def summary(
        self, work: Work, times_s: Sequence[float], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        runs = [verdict.measures for verdict in verdicts if verdict.measures]
        found: dict[str, Any] = {}
        for path in (metric.path for metric in self.metrics):
            *sections, name = path.split(".")
            place = found
            for section in sections:
                place = place.setdefault(section, {})
            place[name] = _of_all(path, [run[path] for run in runs])
        return found


def _of_all(path: str, values: Sequence[Any]) -> Any:
    """Combines the values that one metric has in the runs of a job into the job's value."""
    if path == "training.curve":
        return values[0] if values else []
    if path == "training.delay.counts":
        return [sum(counts) for counts in zip_longest(*values, fillvalue=0)]
    if not values:
        return None
    largest = path in ("training.delay.max", "training.divergence", "training.gap")
    return max(values) if largest else fmean(values)


def judge(
    work: AsyncSgd,
    documents: Sequence[NDArray[np.void]],
    held_out: NDArray[np.void],
    members: Sequence[int],
    bounds: TrainingBounds,
    received: Mapping[int, Received],
) -> Verdict:
    """Compares the results of a run's members with the history in the log, and returns the verdict.
    documents: each member's documents, in the order in which it trains on them."""
    first: WrongValue | None = None
    wrong = 0
    runs = {}
    for rank, one in received.items():
        run = _opened(work, one)
        if run is None:
            expected = f"int64 of {work.result.itemsize // 8}"
            got = "nothing" if one.whole is None else f"{one.whole.dtype} of {one.whole.size}"
            wrong += work.elements
            first = first or WrongValue("result", rank, None, expected, got)
        else:
            runs[rank] = run
    history: _History | None = None
    log: NDArray[np.void] | None = None
    for rank, run in runs.items():
        own = run["log"][: run["commits"]]
        if log is None or not np.array_equal(own, log):
            log, history = own, _History(work, documents, bounds, own)
        assert history is not None
        mistake = history.mistake or _account(work, members.index(rank), run, log)
        if mistake:
            wrong += 1
            first = first or WrongValue("result", rank, None, *mistake)
            continue
        model = run["model"][: work.elements]
        places = np.flatnonzero(history.models[-1].astype(np.int32) != model)
        if places.size:
            at = int(places[0])
            pair = int(history.models[-1][at]), int(model[at])
            wrong, first = wrong + places.size, first or WrongValue("result", rank, at, *pair)
    if len({run["log"][: run["commits"]].tobytes() for run in runs.values()}) > 1:
        wrong += 1
        first = first or WrongValue(
            "result", min(runs), None, "one log", "another at other workers"
        )
    if wrong or history is None or len(runs) < len(members):
        return Verdict(wrong, wrong, first)
    told = list(runs.values())
    taken, gap = lost_with_server(work, documents, told, history)
    if bounds.divergence is not None and gap > bounds.divergence:
        promised, got = f"a replica within {bounds.divergence}", f"{gap:.0f} when the server died"
        return Verdict(1, 1, WrongValue("result", min(runs), None, promised, got))
    measures = _measures(work, held_out, told, history)
    of_server = {"training.taken": taken, "training.gap": gap / SCALE}
    accounts = [run["account"][: run["steps"]].copy() for run in told]
    decided = TrainingHistory(history.log.copy(), accounts, history.changed)
    compared = len(history.log) * work.elements
    return Verdict(measures={**measures, **of_server}, history=decided, compared=compared)


def _opened(work: AsyncSgd, one: Received) -> NDArray[np.void] | None:
    """Returns the fields of a worker's result; None if the array does not have the form of a
    result."""
    room = work.result.itemsize // 8
    if one.whole is None or (one.whole.dtype, one.whole.shape) != (np.dtype("i8"), (room,)):
        return None
    run: NDArray[np.void] = one.whole.view(work.result)[0]
    fits = 0 <= run["commits"] <= work.updates and 0 <= run["steps"] <= work.steps_max
    return run if fits else None


class _History:
    """The result of replaying a server's log. models: the model of each version; for a version
    inside a group, the model before the group. changed: as in TrainingHistory. mistake: what was
    expected and what was found, if the log is wrong."""

    def __init__(
        self,
        work: AsyncSgd,
        documents: Sequence[NDArray[np.void]],
        bounds: TrainingBounds,
        log: NDArray[np.void],
    ) -> None:
        self.log, self.models = log, [np.zeros(work.elements, np.int64)]
        self.delays: list[int] = []
        self.divergence = 0.0
        self.mistake: tuple[str, str] | None = None
        self.changed: dict[tuple[int, int], NDArray[np.int64]] = {}
        self._ends = {0}
        begin = 0
        while begin < len(log) and self.mistake is None:
            end = begin + 1
            while end < len(log) and log["group"][end] == log["group"][begin]:
                end += 1
            self._commit(work, documents, bounds, log[begin:end], begin)
            begin = end

    def _commit(
        self,
        work: AsyncSgd,
        documents: Sequence[NDArray[np.void]],
        bounds: TrainingBounds,
        group: NDArray[np.void],
        base: int,
    ) -> None:
        total = np.zeros(work.elements, np.int64)
        version = base + len(group)
        for one in group:
            rank, step, read = int(one["rank"]), int(one["step"]), int(one["read"])
            what = f"version {int(one['version'])}, step {step} of worker {rank}, read at {read}"
            delay = base - read
            if int(one["version"]) != version or rank >= len(documents) or read not in self._ends:
                self.mistake = f"a commit of version {version} after {base}", what
            elif (rank, step) in self.changed:
                self.mistake = "each step once", what
            elif bounds.delay is not None and delay > bounds.delay:
                self.mistake = f"at most {bounds.delay} versions old", f"{what}, {delay} old"
            if self.mistake:
                return
            self.delays.append(delay)
            update = update_of(work, self.models[read], work.rows_of(documents[rank], step))
            self.changed[rank, step] = np.flatnonzero(update)
            total += update
        self._ends.add(version)
        self.models += [self.models[-1]] * (len(group) - 1) + [wrapped(self.models[-1] + total)]
        self._diverge(bounds, int(group["replicated"][0]), version)

    def _diverge(self, bounds: TrainingBounds, replicated: int, version: int) -> None:
        """Computes how far the replica's model is from the server's at this version, as the norm of
        their difference. If this is more than the system promises, it is recorded as a mistake."""
        if bounds.divergence is None or replicated < 0:
            return
        if replicated not in self._ends:
            self.mistake = "a replica of a version", f"of {replicated}"
            return
        apart = float(
            np.linalg.norm((self.models[version] - self.models[replicated]).astype(float))
        )
        self.divergence = max(self.divergence, apart)
        if apart > bounds.divergence:
            self.mistake = f"a replica within {bounds.divergence}", f"{apart:.0f} at {version}"


def lost_with_server(
    work: AsyncSgd,
    documents: Sequence[NDArray[np.void]],
    runs: Sequence[NDArray[np.void]],
    history: _History,
) -> tuple[int, float]:
    """Returns how many updates a server had confirmed to workers before it died without its replica
    having received them, and their norm in units.

    No log has these updates. They are computed again from the workers' accounts in the order of
    their versions, up to the first version that is missing. runs: the run of each member.
    """
    old = history.log["version"][history.log["epoch"] == 0]
    version = kept = int(old.max(initial=0))
    models = {kept: history.models[kept]}
    groups: dict[int, list[tuple[int, int, int]]] = {}
    for member, run in enumerate(runs):
        own = run["account"][: run["steps"]]
        for place in np.flatnonzero((own["outcome"] == LOST) & (own["version"] > 0)).tolist():
            told = (member, place, int(own["read"][place]))
            groups.setdefault(int(own["version"][place]), []).append(told)
    for after in sorted(groups):
        if after - version != len(groups[after]):
            break
        total = np.zeros(work.elements, np.int64)
        for member, step, read in groups[after]:
            model = history.models[read] if read <= kept else models[read]
            total += update_of(work, model, work.rows_of(documents[member], step))
        models[after] = wrapped(models[version] + total)
        version = after
    apart = np.linalg.norm((models[version] - models[kept]).astype(float))
    return sum(map(len, groups.values())), float(apart)


def _account(
    work: AsyncSgd, member: int, run: NDArray[np.void], log: NDArray[np.void]
) -> tuple[str, str] | None:
    """Compares a worker's own account with the log. Every step that the account calls committed
    must be in the log with the same version, and no other step of the worker may be there. Returns
    what was expected and what was found; None if they agree."""
    own = run["account"][: run["steps"]]
    logged = {int(one["step"]): one for one in log if one["rank"] == member}
    last = int(log["epoch"].max()) if len(log) else 0
    for step, one in enumerate(own):
        entry, outcome = logged.pop(step, None), int(one["outcome"])
        if outcome == COMMITTED:
            if entry is None or entry["read"] != one["read"] or entry["version"] != one["version"]:
                told = "nothing" if entry is None else f"version {int(entry['version'])}"
                return f"step {step} as version {int(one['version'])}", told
        elif entry is not None:
            return f"outcome {outcome} of step {step}", f"version {int(entry['version'])}"
    if logged:
        return "a log of steps that were made", f"step {min(logged)}, epoch {last}"
    return None


def update_of(work: AsyncSgd, model: Model, rows: NDArray[np.void]) -> Model:
    """Returns what a step adds to a model. It is computed with matrices of word counts, which
    differs from how the workers compute it."""
    count, counts, labels = len(rows), word_counts(work, rows), rows["label"]
    margins, right = _margins(work, model, rows, counts)
    rivals = margins.argmax(axis=1)
    wrong = margins.max(axis=1) > right
    signs = np.zeros((count, work.classes), np.int64)
    changes = np.maximum(1, work.rate >> rows["halvings"].astype(np.int64)) * wrong
    signs[np.arange(count), labels] += changes
    signs[np.arange(count), rivals] -= changes
    total: Model = (counts.T @ signs).reshape(-1)
    return total


def loss_of(
    work: AsyncSgd, model: Model, documents: NDArray[np.void], counts: NDArray[np.int64]
) -> float:
    """Returns the mean hinge loss. counts: how often each document has each word."""
    margins, right = _margins(work, model, documents, counts)
    return int((margins.max(axis=1) - right).sum()) / len(documents) / SCALE


def word_counts(work: AsyncSgd, rows: NDArray[np.void]) -> NDArray[np.int64]:
    """Returns how often each word is in each document, of shape (documents, features)."""
    rank, place = np.nonzero(rows["words"] >= 0)
    flat = rank * work.features + rows["words"][rank, place]
    found = np.bincount(flat, minlength=len(rows) * work.features)
    return found.reshape(len(rows), work.features)


def _margins(
    work: AsyncSgd, model: Model, rows: NDArray[np.void], counts: NDArray[np.int64]
) -> tuple[Model, Model]:
    """Returns two arrays. The first has the scores of each document's classes, in which those of
    wrong classes are increased by a margin, of shape (documents, classes). The second has the
    scores of the right classes, of shape (documents,)."""
    halvings = rows["halvings"].astype(np.int64)
    scores = (counts @ model.reshape(work.features, work.classes)) >> halvings[:, np.newaxis]
    places, labels = np.arange(len(rows)), rows["label"]
    right = scores[places, labels]
    margins = scores + SCALE
    margins[places, labels] = right
    return margins, right


def wrapped(values: Model) -> Model:
    """Returns the values modulo 2^32, as int32 holds them."""
    return values.astype(np.int32).astype(np.int64)


def _measures(
    work: AsyncSgd, held_out: NDArray[np.void], runs: Sequence[NDArray[np.void]], history: _History
) -> dict[str, Any]:
    outcomes = np.concatenate([run["account"]["outcome"][: run["steps"]] for run in runs])
    began_ns = min(int(run["began_ns"]) for run in runs)
    log = history.log
    taken_s = (int(log["at_ns"][-1]) - began_ns) / NS_PER_S if len(log) else 0.0
    curve = loss_curve(work, held_out, began_ns, history)
    end_s = max(taken_s, work.time_ns / NS_PER_S)
    return {
        "training.updates": len(log),
        "training.updates_per_s": len(log) / taken_s if taken_s else 0.0,
        "training.delay.mean": fmean(history.delays) if history.delays else 0.0,
        "training.delay.variance": pvariance(history.delays) if history.delays else 0.0,
        "training.delay.max": max(history.delays, default=0),
        "training.stale": int((outcomes == STALE).sum()),
        "training.large": int((outcomes == LARGE).sum()),
        "training.lost": int((outcomes == LOST).sum()),
        "training.divergence": history.divergence / SCALE,
        "training.loss.first": curve[0][1],
        "training.loss.last": curve[-1][1],
        "training.loss.mean": _mean(curve, end_s),
        "training.curve": curve,
        "training.delay.counts": _counts(history.delays),
    }


def _counts(delays: Sequence[int]) -> list[int]:
    """Returns how many of the delays are 0, how many are 1, and so on."""
    found = Counter(delays)
    return [found[delay] for delay in range(max(delays, default=-1) + 1)]


def loss_curve(
    work: AsyncSgd, held_out: NDArray[np.void], began_ns: int, history: _History
) -> list[tuple[float, float]]:
    """Returns (seconds since the run began, loss of the model from then on) for some of the models,
    among them the first and the last."""
    log = history.log
    versions = sorted({int(version) for version in log["version"]})
    shown = versions[:: max(1, len(versions) // CURVE_POINTS)]
    counts = word_counts(work, held_out)
    found = [(0.0, loss_of(work, history.models[0], held_out, counts))]
    for version in sorted({*shown, *versions[-1:]}):
        at_s = (int(log["at_ns"][version - 1]) - began_ns) / NS_PER_S
        found.append((at_s, loss_of(work, history.models[version], held_out, counts)))
    return found


def _mean(curve: Sequence[tuple[float, float]], end_s: float) -> float:
    """Returns the mean of the loss over the time until `end_s`."""
    if not end_s:
        return curve[-1][1]
    ends = [at for at, _ in curve[1:]] + [end_s]
    areas = [loss * (end - at) for (at, loss), end in zip(curve, ends, strict=True)]
    return sum(areas) / end_s


assert UNUSED == 0, "an account begins with zeros"
