"""A round that is one run of a user's training script, from its start to its end. The agent uses
the reducer of its session to make the reductions that the script asks for."""

from __future__ import annotations

import json
import select
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.agreement import Agreement
from agglab.hosts.errors import AllReduceError, ProgramFailed
from agglab.hosts.part import Part
from agglab.hosts.script_ledger import OUTCOME, ROWS, Ledger
from agglab.hosts.script_process import Script, environment
from agglab.hosts.training.service import DTYPES, Service, Terms
from agglab.hosts.workloads import Torch

REPORTS_MAX = 200_000
LAST_WORDS_S = 1.0
"""The time in seconds in which a script that was told of an error may end by itself and say why."""


class Reductions(Protocol):
    """The interface of the object that makes the reductions (all_reduce.Reducer)."""

    def agree_on(self, agreement: Agreement) -> None: ...

    def run(self, values: NDArray, total: NDArray, sums: NDArray[np.int32] | None) -> None: ...

    def serve(self, interrupt: int) -> None: ...


class ScriptRound:
    """One run of a training script.

    scratch: a folder for the files of the round, which the testbed removes if this process is
    killed.
    key: a name of the round, the same at all ranks. control: a file descriptor that becomes
    readable when the testbed has sent a command; `execute` then carries out the command. on_report:
    a function that is called with each report of the script. with_sums: whether the system converts
    float32 to integers, which the testbed then checks too. presence: returns who is in the sums of
    the last reduction (Worker.presence), or None if everybody is in all sums.
    """

    def __init__(
        self,
        part: Part,
        scratch: Path,
        key: str,
        reducer: Reductions,
        control: int,
        execute: Callable[[], None],
        on_report: Callable[[Mapping[str, Any]], None],
        with_sums: bool,
        presence: Callable[[], NDArray[np.uint64] | None],
    ) -> None:
        work = part.work
        assert isinstance(work, Torch)
        self._part, self._scratch, self._key, self._work = part, scratch, key, work
        self._reducer, self._control, self._execute = reducer, control, execute
        self._on_report, self._presence = on_report, presence
        self._sums = np.full(work.elements, 1, np.int32) if with_sums else None
        self._ledger = Ledger(key)
        self._reports: list[Mapping[str, Any]] = []
        self._script: Script | None = None

    def run(self) -> Mapping[str, NDArray]:
        """Performs the round. Returns, by name, the arrays for the testbed. Raises ProgramFailed if
        the script failed, AllReduceError if a reduction failed, and the exceptions of `execute`."""
        began_ns = time.monotonic_ns()
        with tempfile.TemporaryDirectory(prefix="t", dir=self._scratch) as name:
            folder = Path(name)
            # The path of a socket is short: this one is as long as that of the control socket.
            path = str(folder / "a")
            service = Service(path, self._terms(), self._reduce, self._note)
            try:
                self._script = self._start(path, folder)
                self._serve(service, self._script)
            finally:
                if self._script:
                    self._script.kill()
                service.close()
        told = {
            "began_ns": began_ns,
            "ended_ns": time.monotonic_ns(),
            "reports": self._reports,
            "counts": service.counts,
        }
        text = np.frombuffer(json.dumps(told).encode(), np.uint8)
        return {ROWS: self._ledger.rows.view(np.uint8), OUTCOME: text, **self._ledger.sample}

    def check(self) -> None:
        """Raises ProgramFailed if the script has failed; it is called while a reduction is under
        way. A script that has ended without an error has not failed, because other ranks may still
        need the sum."""
        if self._script is not None and self._script.ended and (error := self._script.error()):
            raise ProgramFailed(error)

    def _terms(self) -> Terms:
        part = self._part
        # An int32 sum that lacks workers cannot be rescaled.
        every = DTYPES if self._presence() is None else ("float32",)
        taken = dict.fromkeys((*every, self._work.dtype))
        return Terms(part.rank, part.workers, self._work.elements, part.bind[0], tuple(taken))

    def _start(self, path: str, folder: Path) -> Script:
        own = environment(self._part, self._key, path)
        return Script(self._work.script, self._work.arguments, own, folder)

    def _serve(self, service: Service, script: Script) -> None:
        """Carries out the script's requests and the testbed's commands until the script has
        ended."""
        with select.epoll() as waiting:
            for source in (self._control, service.fileno(), script.fileno()):
                waiting.register(source, select.EPOLLIN)
            while not script.ended:
                self._reducer.serve(waiting.fileno())
                self._execute()
                try:
                    service.step()
                except AllReduceError:
                    script.wait(LAST_WORDS_S)
                    raise
        if error := script.error():
            raise ProgramFailed(error)
        while select.select([service], [], [], 0)[0]:  # its last words
            service.step()

    def _reduce(self, values: NDArray, out: NDArray, agreement: Agreement) -> None:
        """Performs one reduction and records it. `out` may be `values`. Raises the exceptions of
        Reducer.run."""
        given = values.copy() if self._ledger.samples_next else None
        sums = None
        if self._sums is not None and values.dtype == np.float32:
            sums = self._sums[: values.size]
        self._reducer.agree_on(agreement)
        begin_ns = time.monotonic_ns()
        self._reducer.run(values, out, sums)
        end_ns = time.monotonic_ns()
        self._ledger.add(given, out, sums, begin_ns, end_ns, self._presence(), agreement)

    def _note(self, report: Mapping[str, Any]) -> None:
        if len(self._reports) < REPORTS_MAX:
            self._reports.append({**report, "t_ns": time.monotonic_ns()})
        self._on_report(report)
