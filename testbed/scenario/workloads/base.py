"""The interface of a kind of workload. The code that checks scenarios imports the modules of all
kinds. Therefore these modules import nothing of the scenario package, except for type checking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agglab.hosts.workloads import DTYPES, Work
from agglab.hosts.workloads.library_text import library_text
from agglab.testbed.scenario.workloads.correctness import Verdict
from agglab.testbed.scenario.workloads.judged_time import ROUND, Headline
from agglab.testbed.schema.metric import Metric
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario
from agglab.testbed.systems.received_arrays import Received

if TYPE_CHECKING:
    from agglab.testbed.schema.workload_section import Workload as Section


class Workload(ABC):
    """One kind of workload.

    keys: those fields of the section `workload` that this kind has and some others do not. free:
    those of these fields in which contenders may differ, because inputs do not depend on them.
    unread: those fields that most kinds have and this kind does not.

    metrics: the metrics that only its jobs have. clocks: the values of
    `backend` with which it runs. made_of: the kind that a system must support to run this kind, if
    it is a different one. unpredictable: why the scenario does not say what is reduced and how
    often, with {} for the job's name; empty if the scenario says so. dtypes: the types that its
    tensors may have. round_s: the least time after which a round may be given up. headline: the
    time by which its jobs are judged. reduces_elements: whether each round reduces the work's
    elements once, so that they divided by its time are a rate.
    """

    kind: str
    keys: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    metrics: tuple[Metric, ...] = ()
    clocks: tuple[str, ...] = ("mininet", "virtual")
    made_of: str = ""
    unpredictable: str = ""
    dtypes: tuple[str, ...] = DTYPES
    round_s: float = 0.0
    headline: Headline = ROUND
    reduces_elements: bool = True

    @abstractmethod
    def work(self, section: Section, workers: int) -> Work:
        """Returns what each worker does, according to a section of this kind. workers: the number
        of the job's workers."""

    def on_links(self, work: Work, slowest_bps: int) -> Work:
        """Returns the same work for links of which the slowest has this rate."""
        return work

    def facts(self, work: Work) -> Mapping[str, Any]:
        """Returns facts that identify the inputs in addition to the scenario and its seed, for
        manifest.json."""
        return {}

    def lacks(self, work: Work) -> Iterator[tuple[str, str]]:
        """Yields what this machine lacks for the work: what it is and how to get it, each in one
        line."""
        return iter(())

    def depends_on_time(self, work: Work) -> bool:
        """Returns whether right results depend on when packets arrive, so that runs on real links
        usually differ."""
        return False

    @abstractmethod
    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        """Compares what members received in this round with a computation from the inputs of all
        members. received: what each member received, by its rank in the job. The position of a
        wrong element also has that rank."""

    def summary(
        self, work: Work, times_s: Sequence[float], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        """Returns the `metrics` of a job as nested sections. times_s: the times of its rounds,
        without warm-up rounds. verdicts: the verdicts on its rounds."""
        return {}


def library_facts() -> Mapping[str, Any]:
    """Returns `Workload.facts` for inputs that are taken from the source text of Python's standard
    library."""
    text = library_text()
    return {
        "text_sha256": text.sha256,
        "text_words": text.numbers.size,
        "text_vocabulary": len(text.vocabulary),
    }
