"""Implements `calls`. The results of each application are verified by a separate computation."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agglab.hosts.workloads import Calls, InputKey
from agglab.hosts.workloads.calls import LOCKS, WORDCOUNT
from agglab.hosts.workloads.library_text import library_text
from agglab.testbed.scenario.workloads.base import Workload, library_facts
from agglab.testbed.scenario.workloads.correctness import Verdict, WrongValue
from agglab.testbed.scenario.workloads.judged_time import CALL
from agglab.testbed.systems.base import ActiveJob, ResolvedScenario
from agglab.testbed.systems.received_arrays import Received

if TYPE_CHECKING:
    from agglab.hosts.workloads import Work
    from agglab.testbed.schema.workload_section import Workload as Section

Results = Mapping[int, npt.NDArray[Any]]


class CallsWorkload(Workload):
    kind = Calls.kind
    keys = ("application",)
    unread = ("dtype",)
    headline = CALL

    def work(self, section: Section, workers: int) -> Calls:
        """Returns the work. Its values are integers, because they are counts."""
        return Calls(section.elements, "int32", section.application, workers)

    def facts(self, work: Work) -> Mapping[str, Any]:
        assert isinstance(work, Calls)
        return library_facts() if work.application == WORDCOUNT else {}

    def depends_on_time(self, work: Work) -> bool:
        assert isinstance(work, Calls)
        return work.application != WORDCOUNT

    def verdict(
        self,
        resolved: ResolvedScenario,
        job: ActiveJob,
        number: int,
        received: Mapping[int, Received],
    ) -> Verdict:
        work, key = job.job.work, (resolved.seed, job.job.number)
        assert isinstance(work, Calls)
        keys = {rank: InputKey(*key, rank, number) for rank in job.members}
        results, wrong = {}, []
        for rank, one in received.items():
            length = work.inputs(keys[rank]).size
            if _fits(one.whole, length):
                assert one.whole is not None
                results[rank] = one.whole
            else:
                described = "nothing" if one.whole is None else f"{one.whole.size} values"
                wrong.append(WrongValue("result", rank, None, f"int32 of {length}", described))
        judge = _counts if work.application == WORDCOUNT else _sections
        wrong += judge(work, keys, results)
        compared = sum(result.size for result in results.values())
        return Verdict(len(wrong), len(wrong), wrong[0] if wrong else None, compared=compared)


def _fits(result: npt.NDArray[Any] | None, length: int) -> bool:
    return result is not None and result.dtype == np.int32 and result.shape == (length,)


def _counts(work: Calls, keys: Mapping[int, InputKey], results: Results) -> Iterator[WrongValue]:
    """Yields wrong results of the word count: each member must have received, for each of its
    words, how often all members together have the word. This check counts word by word, while the
    workers count key by key."""
    text = library_text()
    words = {rank: [text.vocabulary[n] for n in work.part(key)] for rank, key in keys.items()}
    everybody = Counter(word for own in words.values() for word in own)
    for rank, result in results.items():
        own = sorted(set(words[rank]), key=hash_of)
        for index, (word, got) in enumerate(zip(own, result.tolist(), strict=True)):
            if got != everybody[word]:
                yield WrongValue("result", rank, index, everybody[word], got)


def hash_of(word: bytes) -> int:
    """Returns the hash by which the keys of words are sorted. This code is independent of that in
    hosts/workloads/library_text.py."""
    return int(hashlib.blake2b(word, digest_size=8).hexdigest(), 16)


def _sections(work: Calls, keys: Mapping[int, InputKey], results: Results) -> Iterator[WrongValue]:
    """Yields wrong results of critical sections. A section reads its lock's counter and then raises
    it by one, so two sections that overlap read the same number.

    Of all sections of a lock, over all members, exactly one must read each number from 0 on. Each
    member must read ascending numbers, because its own sections are consecutive.
    """
    for lock in range(LOCKS):
        read: dict[int, int] = {}
        wanted = sum(int((work.inputs(key) == lock).sum()) for key in keys.values())
        for rank, result in results.items():
            last = -1
            for index in np.flatnonzero(work.inputs(keys[rank]) == lock).tolist():
                got = int(result[index])
                if got in read:
                    yield WrongValue("result", rank, index, f"not {got}, as rank {read[got]}", got)
                elif not last < got < wanted:
                    yield WrongValue("result", rank, index, f"above {last}, below {wanted}", got)
                last, read[got] = max(last, got), rank
