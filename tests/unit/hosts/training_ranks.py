"""Training scripts without a testbed: the ranks are processes, forked off one that has PyTorch, and
their agents are threads of the test, which reduce by a Together or by a system over loopback."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import select
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agglab.hosts.agreement import PLAIN, Agreement
from agglab.hosts.bfloat16 import cast, name_of, numbers
from agglab.hosts.errors import AllReduceError
from agglab.hosts.training.environment import script_environment
from agglab.hosts.training.service import ReduceCall, Service, Terms

ELEMENTS = 10_000
PATIENCE_S, END_S = 60.0, 30.0
Script = Callable[[int, int], Any]
"""script(rank, workers), a module's function: what a rank does; returns what can be pickled."""


class Together:
    """Sums in this process: what a system would do, for services in threads."""

    def __init__(self, workers: int) -> None:
        self._values: list[NDArray] = [np.empty(0)] * workers
        self._agreements = [PLAIN] * workers
        self._turn = threading.Condition()
        self._arrived, self._meetings, self._is_one_missing = 0, 0, False

    def miss_a_worker(self) -> None:
        """A rank has died: where ranks wait for it, or will, the reduction fails."""
        with self._turn:
            self._is_one_missing = True
            self._turn.notify_all()

    def of(self, rank: int) -> ReduceCall:
        """The reduction of one rank."""

        def reduce(values: NDArray, out: NDArray, agreement: Agreement) -> None:
            self._values[rank], self._agreements[rank] = values, agreement
            self._meet()
            shapes = {(each.size, each.dtype) for each in self._values}
            if len(shapes) != 1 or len(set(self._agreements)) != 1:
                raise AllReduceError("the workers do not reduce alike")
            parts = [numbers(each) for each in self._values]
            total = cast(np.sum(parts, axis=0, dtype=parts[0].dtype), values.dtype)
            self._meet()
            out[...] = total

        return reduce

    def _meet(self) -> None:
        with self._turn:
            meeting = self._meetings
            self._arrived += 1
            if self._arrived == len(self._values):
                self._arrived, self._meetings = 0, meeting + 1
                self._turn.notify_all()
            self._turn.wait_for(
                lambda: self._meetings > meeting or self._is_one_missing, PATIENCE_S
            )
            if self._meetings == meeting:
                raise AllReduceError("a worker is missing")


class Noted:
    """A reduction that remembers what it was asked for, and a hash of all results."""

    def __init__(self, reduce: ReduceCall) -> None:
        self._reduce, self._hash = reduce, hashlib.blake2b()
        self.dtypes: list[str] = []

    def __call__(self, values: NDArray, out: NDArray, agreement: Agreement) -> None:
        self.dtypes.append(name_of(values.dtype))
        self._reduce(values, out, agreement)
        self._hash.update(f"{out.size} {name_of(out.dtype)} ".encode() + out.tobytes())

    @property
    def digest(self) -> str:
        """Equal where the results were, in their order."""
        return self._hash.hexdigest()


@dataclass
class Rank:
    """What one rank and its agent have come to."""

    result: Any = None
    error: str = ""
    exit_code: int | None = None
    reports: list[Mapping[str, Any]] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    digest: str = ""
    dtypes: Sequence[str] = ()
    reductions: int = 0
    goodbye: bool = False
    agent_error: str = ""


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["torch", "torch.distributed.fsdp", "agglab.hosts.training.backend"]
)


def run_ranks(
    script: Script,
    workers: int = 2,
    reduces: Callable[[int], ReduceCall] | None = None,
    elements: int = ELEMENTS,
    dtypes: tuple[str, ...] = ("float32", "int32"),
    environment: Mapping[str, str] | None = None,
    serves: Callable[[int], Callable[[int], None]] | None = None,
    patience_s: float = PATIENCE_S,
    on_death: Callable[[], None] | None = None,
) -> list[Rank]:
    """Run a script at all ranks and wait for its end. reduces(rank): its reduction;
    serves(rank): what an agent does between reductions, until a descriptor
    can be read. on_death: called if the process of a rank fails."""
    reduces = reduces or Together(workers).of
    ranks = [Rank() for _ in range(workers)]
    with tempfile.TemporaryDirectory() as sockets:
        port = free_port()
        threads = []
        for number, rank in enumerate(ranks):
            path = f"{sockets}/{number}"
            noted = Noted(reduces(number))
            terms = Terms(number, workers, elements, "127.0.0.1", dtypes)
            service = Service(path, terms, noted, rank.reports.append)
            variables = script_environment(number, workers, ("127.0.0.1", port), "test", path)
            variables |= environment or {}
            serve = serves(number) if serves else None
            arguments = (script, rank, service, noted, variables, serve, patience_s, on_death)
            threads.append(threading.Thread(target=_serve, args=arguments))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return ranks


def _serve(
    script: Script,
    rank: Rank,
    service: Service,
    noted: Noted,
    variables: Mapping[str, str],
    serve: Callable[[int], None] | None,
    patience_s: float,
    on_death: Callable[[], None] | None,
) -> None:
    """One agent: until its script has ended."""
    ours, theirs = _context.Pipe(duplex=False)
    process = _context.Process(target=_run, args=(script, variables, theirs))
    process.start()
    theirs.close()
    deadline_s = time.monotonic() + patience_s
    waiting = select.epoll()
    waiting.register(process.sentinel, select.EPOLLIN)
    waiting.register(service.fileno(), select.EPOLLIN)
    try:
        while time.monotonic() < deadline_s:
            if serve:
                serve(waiting.fileno())
            ready = [descriptor for descriptor, _ in waiting.poll(1)]
            if service.fileno() in ready:
                service.step()
            elif process.sentinel in ready:
                break
    except AllReduceError as error:
        rank.agent_error = str(error)
    service.close(rank.agent_error or "the test is over")
    if ours.poll(END_S):
        try:
            rank.result, rank.error = ours.recv()
        except EOFError:
            rank.error = "ended without a word"
    else:
        rank.error = "still running"
        process.kill()
    process.join()
    rank.exit_code = process.exitcode
    if rank.exit_code and on_death:
        on_death()
    rank.counts, rank.reductions = service.counts, service.reductions
    rank.digest, rank.dtypes = noted.digest, noted.dtypes
    rank.goodbye = service.goodbye


def _run(script: Script, variables: Mapping[str, str], pipe: Connection) -> None:
    """In the process of a rank."""
    os.environ.update(variables)
    import torch
    from torch import distributed

    from agglab.hosts.training import autoload, client

    autoload.register_where_needed()
    torch.set_num_threads(1)
    result, error = None, ""
    try:
        result = script(int(variables["RANK"]), int(variables["WORLD_SIZE"]))
        if distributed.is_initialized():
            distributed.destroy_process_group()
        if client._connected is not None:
            client._connected.close()
    except Exception as wrong:
        error = f"{type(wrong).__name__}: {wrong}"
    pipe.send((result, error))
    pipe.close()
    os._exit(0)  # PyTorch's threads may abort a process that has finished, Gloo's too


def free_port() -> int:
    """Of TCP at 127.0.0.1, for PyTorch's store."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
