"""Defines MininetBackend, the Backend for real packets: a MininetNetwork, switches of any target,
and agents as processes."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agglab.hosts import library
from agglab.hosts.modules import load_module
from agglab.hosts.part import WORKER
from agglab.testbed.base import processor_time
from agglab.testbed.base.errors import NodeFailed
from agglab.testbed.base.kernel import network_namespace
from agglab.testbed.base.processor_time import Usage
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.base.worker_id import Event, WorkerId
from agglab.testbed.real import (
    MininetNetwork,
    NativeTarget,
    NodeProcess,
    RunningSwitch,
    Target,
    recordings,
)
from agglab.testbed.real.agents import Agents
from agglab.testbed.run.backend import Command
from agglab.testbed.run.restarted_counters import Count, KeptCounts
from agglab.testbed.run.samples import Record, Tracks
from agglab.testbed.schema.faults import Fault
from agglab.testbed.systems.plan import Entries
from agglab.testbed.systems.received_arrays import Array, Received
from agglab.topologies import Topology, interface_name
from agglab.topologies.graph import Impairment
from p4native.common.c_build import BuildError
from p4native.common.contexts import BuiltOnEntry
from p4native.switch import PipelineError, loop_library

ARRAYS = ("result", "sums", "out")
"""The fields of Received for every kind of workload."""
NPY_HEADER_BYTES = 128
WATCH_S = 0.1
"""The longest time between two checks of the processes, in seconds."""
LOOK_SHARE = 30
"""Reading the links' counters may take at most one part in LOOK_SHARE of a processor."""


class MininetBackend(BuiltOnEntry):
    """The Backend (backend.py) of runs on real links. targets: the target of every switch. sums: a
    folder for what agents receive, which can be large. counters: the names of the P4 programs'
    counters, whose values are kept when a switch is restarted."""

    def __init__(
        self,
        topology: Topology,
        seed: int,
        faults: Sequence[Fault],
        targets: Mapping[str, Target],
        scratch: Path,
        logs: Path,
        sums: Path,
        start_s: float,
        counters: Iterable[str],
        pcaps: Path | None = None,
        sample_ns: int = 0,
        buffered: Collection[str] = (),
    ) -> None:
        """sample_ns: the interval at which links are sampled for `record` and agents sample
        themselves; 0 for never. buffered: names of the links that carry buffers (see
        MininetNetwork)."""
        super().__init__()
        self._topology = topology
        self._targets = dict(targets)
        self._counters = tuple(dict.fromkeys(counters))
        self._logs, self._sums, self._start_s = logs, sums, start_s
        self._network = MininetNetwork(topology, seed, scratch, logs, pcaps, faults, buffered)
        self._agents = Agents(scratch / "agents.sock")
        self._switches: dict[str, RunningSwitch] = {}
        self._processes: dict[WorkerId, NodeProcess] = {}
        self._running: set[WorkerId] = set()
        self._stopping: set[WorkerId] = set()
        self._kept = KeptCounts()
        self._injectors: dict[str, socket.socket] = {}
        self._sample_ns = sample_ns
        self._tracks: Tracks | None = None
        self._started: dict[tuple[int, int], WorkerId] = {}

    def _build(self) -> None:
        _compile(self._targets.values())
        self._stack.enter_context(self._network)
        self._stack.enter_context(self._agents)
        self._switches |= self._network.start_switches(self._targets, self._start_s)
        if self._sample_ns:
            queues = self._stack.enter_context(contextlib.closing(self._network.queues()))
            self._tracks = Tracks(self._sample_ns, queues.look)

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def write_entries(self, switch: str, entries: Entries) -> None:
        self._switches[switch].replace(entries)

    def start_worker(self, worker: WorkerId, configuration: Mapping[str, Any]) -> None:
        name = f"agent-{worker.name}"
        path = self._logs / f"{name}.json"
        _build(configuration["system"])
        places = {"control": str(self._agents.path), "sums_dir": str(self._sums)}
        told = {**configuration, **places, "sample_ns": self._sample_ns}
        path.write_text(json.dumps(told, indent=2) + "\n")
        self._started[worker.job, configuration["rank"]] = worker
        command = [sys.executable, "-m", "agglab.hosts.agent", str(path)]
        self._agents.expect(worker)
        process = self._network.spawn(worker.host, command, name, _environment())
        self._processes[worker] = process
        self._running.add(worker)

    def command(self, worker: WorkerId, command: Command) -> None:
        if command.get("command") == "stop":
            self._stopping.add(worker)
        self._agents.send(worker, command)

    def wait(self, until_ns: int) -> list[Event]:
        while True:
            left_s = (until_ns - time.monotonic_ns()) / 1e9
            events = self._agents.poll(min(self._look(), left_s))
            events += self._ended()
            self._network.check()
            if events or left_s <= 0:
                return events

    def _look(self) -> float:
        """Samples the counters of the links if a sample is due. Returns how long to wait until the
        next sample, in seconds. Sampling takes no more than 1 / LOOK_SHARE of a processor, however
        many links there are."""
        tracks = self._tracks
        if tracks is None:
            return WATCH_S
        now_ns = time.monotonic_ns()
        if now_ns >= tracks.due_ns:
            tracks.look(now_ns)
            took_ns = time.monotonic_ns() - now_ns
            tracks.due_ns = max(tracks.due_ns, now_ns + LOOK_SHARE * took_ns)
        return min(WATCH_S, max(0, tracks.due_ns - time.monotonic_ns()) / 1e9)

    def record(self) -> Record:
        if self._tracks is None:
            return Record()
        self._tracks.look(time.monotonic_ns())
        links = {str(name): rows for name, rows in self._tracks.kept().items()}
        every_ns = self._tracks.every_ns
        return Record(
            recordings.samples(self._sums, self._started, every_ns // self._sample_ns),
            links,
            latencies=recordings.latencies(self._sums, self._started),
            every_ns=every_ns,
        )

    def _ended(self) -> list[Event]:
        """Returns the events of programs that ended without being told to, after the events that
        these programs sent before."""
        ended = []
        for worker in sorted(self._running, key=lambda w: (w.job, w.host, w.role, w.rank)):
            status = self._processes[worker].poll()
            if status is None:
                continue
            self._running.discard(worker)
            if worker not in self._stopping:
                ended.append((worker, status))
        events = self._agents.poll(0) if ended else []
        return [*events, *(self._end_event(worker, status) for worker, status in ended)]

    def _end_event(self, worker: WorkerId, status: int) -> Event:
        process = self._processes[worker]
        what = f"the agent exited with status {status}"
        return {
            "event": "ended",
            "job": worker.job,
            "name": worker.host,
            **({} if worker.role == WORKER else {"role": worker.role}),
            "rank": json.loads(Path(process.command[-1]).read_text())["rank"],
            "status": status,
            "t_ns": time.monotonic_ns(),
            "report": NodeFailed(worker.host, what, process.command, process.log).report(),
        }

    def progress(self) -> list[Event]:
        """Returns no events, because agents send their progress themselves."""
        return []

    def received(self, job: int, rank: int, number: int) -> Received | None:
        folder = self._sums / f"job{job}-rank{rank}-round{number}"
        if not folder.is_dir():
            return None
        arrays = {path.stem: _mapped(path) for path in folder.glob("*.npy")}
        known = {what: arrays.pop(what, None) for what in ARRAYS}
        received = Received(**known, more=arrays)
        shutil.rmtree(folder)
        return received

    def pause_worker(self, worker: WorkerId, paused: bool) -> None:
        self._processes[worker].signal_group(signal.SIGSTOP if paused else signal.SIGCONT)

    def kill_worker(self, worker: WorkerId) -> None:
        self._processes[worker].signal_group(signal.SIGKILL)

    def set_link_down(self, fault: int, link: str, down: bool) -> None:
        self._network.set_link_down(fault, link, down)

    def set_rate(self, fault: int, directions: Sequence[str], rate_bps: int | None) -> None:
        self._network.set_rate(fault, directions, rate_bps)

    def set_impairment(
        self, fault: int, link: str, directions: Sequence[str], impairment: Impairment, on: bool
    ) -> None:
        self._network.set_impairment(fault, link, directions, impairment, on)

    def expect_fault(self, fault: Fault) -> None:
        self._network.expect_fault(fault)

    def enter(self, node: str) -> list[str]:
        """Returns the words that start a program in the namespace of a host or switch when they
        precede its command."""
        return ["mnexec", "-a", str(self._network.mininet[node].pid)]

    def inject(self, host: str, frames: Sequence[bytes]) -> None:
        link = self._injectors.get(host)
        if link is None:
            link = self._injectors[host] = self._open(host)
        for frame in frames:
            try:
                link.send(frame)
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # the link's queue has dropped and counted it
                    raise

    def _open(self, host: str) -> socket.socket:
        """Returns a new packet socket, which stays in the namespace in which it was created."""
        with network_namespace(self._network.mininet[host].pid):
            link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            link.bind((interface_name(host, 0), 0))
        self._stack.callback(link.close)
        return link

    def stop_switch(self, switch: str) -> None:
        self._keep_counts(switch)
        self._network.stop_switch(switch)

    def start_switch(self, switch: str) -> None:
        self._switches[switch] = self._network.start_switch(
            switch, self._targets[switch], self._start_s
        )

    def set_program(self, switch: str, program: Target) -> None:
        self._targets[switch] = program

    def reprogram_switch(self, switch: str) -> None:
        self._keep_counts(switch)
        self._switches[switch].reprogram(self._targets[switch])

    def _keep_counts(self, switch: str) -> None:
        """Stores the current counts of a switch, which is about to lose them."""
        for counter in self._counters:
            if (cells := self._read_counter(switch, counter)) is not None:
                self._kept.keep((switch, counter), cells)

    def _read_counter(self, switch: str, counter: str) -> dict[int, Count] | None:
        try:
            return self._switches[switch].read_counter(counter)
        except ValueError:
            return None

    def entries(self, switch: str) -> Entries:
        return self._switches[switch].entries

    def counters(self, switch: str, counter: str) -> dict[int, Count] | None:
        cells = self._read_counter(switch, counter)
        return None if cells is None else self._kept.total((switch, counter), cells)

    def registers(self, switch: str, register: str, indices: list[int]) -> list[int] | None:
        try:
            return self._switches[switch].read_register(register, indices)
        except (ValueError, NodeFailed):
            return None

    def statistics(self) -> NetworkStatistics:
        return self._network.statistics()

    def carried_bytes(self) -> dict[str, int]:
        return self._network.carried_bytes()

    def usage(self) -> Usage:
        pids = {name: [switch.process.pid] for name, switch in self._switches.items()}
        for worker in self._running:
            pids.setdefault(worker.host, []).append(self._processes[worker].pid)
        return processor_time.sample(pids, time.monotonic())


def _mapped(path: Path) -> Array:
    """Returns the content of a file as an array that remains valid when the file is removed. Empty
    files are handled separately because they cannot be mapped."""
    empty = path.stat().st_size <= NPY_HEADER_BYTES
    array: Array = np.load(path, mmap_mode=None if empty else "r")
    return array


def _environment() -> dict[str, str]:
    """Returns the environment of agents, which limits each numeric library to one thread. An agent
    is one worker, and there may be more workers than processors."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@functools.cache
def _build(endpoints: str) -> None:
    """Compiles in advance the C code of a system, which every agent would otherwise compile during
    its start. If that fails, the first agent to start reports why. endpoints: the module of the
    system's endpoints."""
    with contextlib.suppress(Exception):  # whatever a user's module does
        getattr(load_module(endpoints), "build", lambda: None)()


def _compile(targets: Iterable[Target]) -> None:
    """Compiles in advance what every switch and agent would otherwise compile during its start. If
    that fails, the first switch or agent to start reports why."""
    with contextlib.suppress(BuildError):
        library.built()
    if any(isinstance(target, NativeTarget) for target in targets):
        with contextlib.suppress(PipelineError):
            loop_library()
