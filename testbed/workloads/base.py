"""The interface of a kind of workload. What checks scenarios imports these modules, which know of
scenarios the values alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agglab.hosts.workloads import DTYPES, Work
from agglab.hosts.workloads.library_text import library_text
from agglab.testbed.received import Received
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario
from agglab.testbed.verify import Verdict

if TYPE_CHECKING:
    from agglab.testbed.scenario.schema import Workload as Section


class Workload(ABC):
    """One kind. keys: the fields of the scenario's section that not every kind has; free: those of
    them in which contenders may differ, as inputs do not depend on them; unread: the other fields
    that this kind does not have. metrics: path -> meaning of the metrics that only its jobs have.
    clocks: values of `backend` that it runs on. made_of: the kind that a system has to do for this
    one, where that is another. unpredictable: why the scenario does not say what is reduced how
    often, with the job's name for {}; empty where it does. dtypes: the types that its tensors may
    have. round_s: how long a round may take at least before it is given up."""

    kind: str
    keys: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    metrics: Mapping[str, str] = {}
    clocks: tuple[str, ...] = ("mininet", "virtual")
    made_of: str = ""
    unpredictable: str = ""
    dtypes: tuple[str, ...] = DTYPES
    round_s: float = 0.0

    @abstractmethod
    def work(self, section: Section, workers: int) -> Work:
        """Returns what a section of this kind asks of each worker of a job with this many
        workers."""

    def on_links(self, work: Work, slowest_bps: int) -> Work:
        """Returns the same for links of which the slowest has this rate."""
        return work

    def facts(self, work: Work) -> Mapping[str, Any]:
        """Returns what identifies its inputs besides the scenario and its seed, for
        manifest.json."""
        return {}

    def lacks(self, work: Work) -> Iterator[tuple[str, str]]:
        """Yields what this machine needs for it and lacks: what it is, and how to get it, each in
        one line."""
        return iter(())

    @abstractmethod
    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        """Compares what these members received in this round, by their rank in the job, with a
        computation from the inputs of all members. The position of a wrong element also has that
        rank."""

    def summary(
        self, work: Work, times_s: Sequence[float], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        """Returns the `metrics` of a job whose rounds had these verdicts, as nested sections.
        times_s: the times of the rounds, without those for warming up."""
        return {}


def library_facts() -> Mapping[str, Any]:
    """Returns `Workload.facts` of inputs from the text of Python's own library."""
    text = library_text()
    return {
        "text_sha256": text.sha256,
        "text_words": text.numbers.size,
        "text_vocabulary": len(text.vocabulary),
    }
