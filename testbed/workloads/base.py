"""What the testbed asks of a kind of workload. These modules import nothing of `scenario` at run
time, because the scenario's keys depend on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agglab.hosts.workloads import DTYPES, Work
from agglab.hosts.workloads.library_text import library_text
from agglab.testbed.received import Received
from agglab.testbed.systems.base import ActiveJob
from agglab.testbed.verify import Verdict

if TYPE_CHECKING:
    from agglab.testbed.scenario import ResolvedScenario
    from agglab.testbed.scenario.schema import Workload as Section


class Workload(ABC):
    """One kind. keys: the fields of the scenario's section that not every kind has; free: of these
    the ones in which contenders may differ, as inputs do not depend on them; unread: of the
    other fields those that this one does not have. metrics: path -> meaning, of what metrics.json
    holds of its jobs alone. clocks: values of `backend` that it runs on. made_of: the kind that a
    system has to do for this one, where that is another. unpredictable: why the scenario
    does not say what is reduced how often, with the job's name for {}; empty where it does.
    dtypes: what it can be of. round_s: how long a round may take at least before it is given up."""

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
        """What a section of this kind asks of each worker of a job that has so many."""

    def on_links(self, work: Work, slowest_bps: int) -> Work:
        """The same on links of which the slowest has this rate."""
        return work

    def facts(self, work: Work) -> Mapping[str, Any]:
        """What identifies its inputs beside the scenario and its seed, for manifest.json."""
        return {}

    def lacks(self, work: Work) -> Iterator[tuple[str, str]]:
        """What this machine has to have for it and has not: what, and how to get it, a line
        each."""
        return iter(())

    @abstractmethod
    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        """What these members have received in the round of that number, by their rank in the job,
        against a computation from the inputs of all members. A place that is wrong has that rank,
        too."""

    def summary(
        self, work: Work, times_s: Sequence[float], verdicts: Sequence[Verdict]
    ) -> Mapping[str, Any]:
        """`metrics` of a job whose rounds came to these verdicts, as sections in one another.
        times_s: of the rounds, without those to warm up."""
        return {}


def library_facts() -> Mapping[str, Any]:
    """`Workload.facts` of inputs from the text of Python's own library."""
    text = library_text()
    return {
        "text_sha256": text.sha256,
        "text_words": text.numbers.size,
        "text_vocabulary": len(text.vocabulary),
    }
