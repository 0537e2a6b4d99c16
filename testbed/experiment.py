"""The part of a run that happens inside its namespaces: network, switches, agents, rounds."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from hosts import wire
from hosts.tensors import make_tensor
from testbed import usage
from testbed.agents import AgentFailed, Agents, Event
from testbed.metrics import Measurements, bounds, round_time_s
from testbed.network import MininetNetwork, NativeTarget, RunningSwitch
from testbed.plan import Entries, Job, job_entries
from testbed.program import Program
from testbed.progress import Progress
from testbed.record import EventLog, RunFolder
from testbed.scenario import Scenario
from testbed.scenario.graph import topology
from testbed.usage import Usage
from testbed.verify import Verdict, combine, verify
from topologies import Topology

JOB = 1
FIRST_TAG = 1
COUNTERS = {
    "new": "contribution_new",
    "duplicate": "contribution_duplicate",
    "stale": "contribution_stale",
    "complete": "chunk_complete",
    "refused": "contribution_refused",
    "repeated": "result_repeated",
    "malformed": "malformed",
}
"""Our word in metrics.json -> the counter's name in the P4 program."""


class Experiment:
    """One scenario, run once. `measure` does everything; nothing it starts outlives it."""

    def __init__(
        self, scenario: Scenario, program: Program, folder: RunFolder, scratch: Path, stream: TextIO
    ) -> None:
        assert scenario.switch.lanes and scenario.workload.window, "a resolved scenario"
        self.scenario = scenario
        self.program = program
        self.folder = folder
        self.scratch = scratch
        self.graph = topology(scenario)
        self.lanes = scenario.switch.lanes
        self.sums = folder.path / "sums"  # not in scratch: /run may be small
        self.log = EventLog(folder.path / "events.jsonl")
        self.progress = Progress(
            stream,
            scenario.topology.workers,
            scenario.workload.rounds,
            ceil(scenario.workload.elements / self.lanes),
            wire.frame_bytes(self.lanes) * 8,
        )

    def measure(self) -> Measurements:
        """Build, start, reduce, count. Raises NodeFailed or AgentFailed if a part of it fails."""
        self.sums.mkdir()
        self.scratch.mkdir()
        pcaps = self.folder.path / "pcap" if self.scenario.switch.pcap else None
        if pcaps:
            pcaps.mkdir()
        self.log.add("start", scenario=self.scenario.name, seed=self.scenario.seed)
        try:
            with MininetNetwork(
                self.graph, self.scenario.seed, self.scratch, self.folder.logs, pcaps
            ) as network:
                return self._in(network)
        finally:
            shutil.rmtree(self.sums)
            self.progress.close()
            self.log.close()

    def _in(self, network: MininetNetwork) -> Measurements:
        self.log.add("network")
        switches = [self._start_switch(network, switch.name) for switch in self.graph.switches]
        pids = {switch.name: switch.process.pid for switch in switches}
        socket = self.scratch / "agents.sock"
        with Agents(socket, self.scenario.topology.workers, self._take) as agents:
            for rank, host in enumerate(self.graph.hosts):
                command = self._agent(rank, host.name, host.ip, socket)
                process = network.spawn(host.name, command, f"agent-{host.name}", _environment())
                agents.watch(rank, process)
                pids[f"worker {rank}"] = process.pid
            agents.wait_ready(self.scenario.timeouts.start_s)
            rounds, verdict, used = self._rounds(network, agents, pids)
            agents.stop()
        return self._collected(network, switches, rounds, verdict, used)

    def _start_switch(self, network: MininetNetwork, name: str) -> RunningSwitch:
        target = NativeTarget(self.program.json, self.program.p4info)
        switch = network.start_switch(name, target, self.scenario.timeouts.start_s)
        switch.install(entries(self.scenario, self.graph, name))
        self.log.add("switch", name=name, pid=switch.process.pid)
        return switch

    def _agent(self, rank: int, host: str, ip: str, socket: Path) -> list[str]:
        """Write the agent's configuration (docs/architecture.md) and return its command."""
        workload = self.scenario.workload
        link = next(iter(self.graph.ports(host).values()))
        path = self.folder.logs / f"agent-{host}.json"
        configuration = {
            "name": host,
            "job": JOB,
            "rank": rank,
            "workers": self.scenario.topology.workers,
            "lanes": self.lanes,
            "slots": self.scenario.switch.slots,
            "window": workload.window,
            "first_tag": FIRST_TAG,
            "bind": [ip, wire.WORKER_PORT_BASE + JOB],
            "aggregator": [wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_PORT],
            "link_rate_bps": link.a_to_b.rate_bps,
            "elements": workload.elements,
            "dtype": workload.dtype,
            "seed": self.scenario.seed,
            "give_up_s": workload.give_up_s,
            "control": str(socket),
            "sums_dir": str(self.sums),
        }
        path.write_text(json.dumps(configuration, indent=2) + "\n")
        return [sys.executable, "-m", "hosts.agent", str(path)]

    def _rounds(
        self, network: MininetNetwork, agents: Agents, pids: dict[str, int]
    ) -> tuple[list[dict[int, Event]], Verdict, Usage]:
        """Every round, each verified before the next: the processors are the round's alone."""
        rounds, verdicts, used = [], [], usage.NOTHING
        timeout_s = self._round_timeout_s()
        for number in range(self.scenario.workload.rounds):
            before = usage.sample(pids, time.monotonic())
            self.progress.begin_round(number, time.monotonic_ns())
            ended = agents.round(number, timeout_s, self._idle(network))
            used = used + usage.sample(pids, time.monotonic()).since(before)
            verdict = self._verify(number)
            self.progress.end_round(round_time_s(ended))
            self.log.add("verified", round=number, exact=verdict.exact, wrong=verdict.wrong)
            rounds.append(ended)
            verdicts.append(verdict)
        return rounds, combine(verdicts), used

    def _idle(self, network: MininetNetwork) -> Callable[[], None]:
        def idle() -> None:
            network.check()
            self.progress.draw()

        return idle

    def _round_timeout_s(self) -> float:
        configured = self.scenario.timeouts.round_s
        bound_s = bounds(self.scenario, self.graph).link_s
        return configured or 60 + 20 * bound_s + self.scenario.workload.give_up_s

    def _verify(self, number: int) -> Verdict:
        seed, workload = self.scenario.seed, self.scenario.workload
        ranks = range(self.scenario.topology.workers)
        files = [self.sums / f"job{JOB}-rank{rank}-round{number}.npy" for rank in ranks]
        received: list[npt.NDArray[Any]] = [np.load(file, mmap_mode="r") for file in files]
        if any(sums.shape != (workload.elements,) for sums in received):
            raise AgentFailed(f"round {number}: sums of another shape than the tensor's")

        def inputs(start: int, count: int) -> list[npt.NDArray[Any]]:
            return [
                make_tensor(seed, JOB, rank, number, count, workload.dtype, start) for rank in ranks
            ]

        verdict = verify(inputs, received, self.lanes)
        for file in files:
            file.unlink()
        return verdict

    def _take(self, event: Event) -> None:
        fields = {k: v for k, v in event.items() if k not in ("event", "t_ns")}
        if "t_ns" in event:
            fields["agent_ns"] = event["t_ns"]
        self.log.add(event["event"], **fields)
        if event["event"] in ("progress", "round"):
            self.progress.event(event)

    def _collected(
        self,
        network: MininetNetwork,
        switches: list[RunningSwitch],
        rounds: list[dict[int, Event]],
        verdict: Verdict,
        used: Usage,
    ) -> Measurements:
        counters = {switch.name: _counters(switch) for switch in switches}
        statistics = network.statistics()
        drops = {
            way.direction: {"count": way.dropped_injected, "numbers": list(way.dropped_numbers)}
            for way in statistics.directions
        }
        self.folder.write_json("drops.json", drops)
        self.log.add("end")
        processors = len(os.sched_getaffinity(0))
        return Measurements(rounds, verdict, statistics, counters, used, processors)


def entries(scenario: Scenario, graph: Topology, switch: str) -> Entries:
    """What one switch is filled with: forwarding for all hosts, and the job of all workers."""
    hosts = tuple(host.name for host in graph.hosts)
    return job_entries(graph, switch, [Job(JOB, hosts, 0, scenario.switch.slots)])


def _counters(switch: RunningSwitch) -> dict[str, int]:
    """Packets by kind, over all jobs. A program of the user's own may count less than ours."""
    counts = {}
    for kind, counter in COUNTERS.items():
        try:
            cells = switch.read_counter(counter)
        except ValueError:
            continue
        counts[kind] = sum(packets for packets, _ in cells.values())
    return counts


def _environment() -> dict[str, str]:
    """One thread a library: an agent is one worker, and workers outnumber processors."""
    repository = str(Path(__file__).resolve().parents[1])
    return {
        **os.environ,
        "PYTHONPATH": repository,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
