"""The Mininet network of a run: namespaces, veth links, rates, losses, and the programs in the
network."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agglab.testbed.base.errors import MachineLacks, NodeFailed
from agglab.testbed.base.kernel import network_namespace
from agglab.testbed.base.traffic_counters import NetworkStatistics
from agglab.testbed.real import impaired, interfaces, link_counters, links, nodes_file
from agglab.testbed.real.impaired import ImpairedDirection
from agglab.testbed.real.process import NodeProcess, put_first, stop_all
from agglab.testbed.real.queues import Queues
from agglab.testbed.real.rules import DirectionRules, PortDrop, direction_rules
from agglab.testbed.real.targets import (
    NativeTarget,
    RunningSwitch,
    SwitchSetting,
    Target,
    start_switch,
)
from agglab.testbed.schema.faults import Fault, Impair, LinkDown
from agglab.topologies import LinkEnd, Topology, interface_name
from agglab.topologies.graph import Impairment
from p4native.common.contexts import BuiltOnEntry
from p4native.common.processes import exit_in_words


class MininetNetwork(BuiltOnEntry):
    """The complete network of a run. It is a context manager that must be used inside `isolated`.

    topology: what is built; each host and each switch has a separate network namespace. seed: the
    scenario's seed, from which losses derive. scratch: the folder that `isolated` passes on. logs:
    the folder for the programs' logs. pcap_dir: the folder for switches' captures, or None. faults:
    the faults that may begin during the run; frames are counted for them from the start. buffered:
    names of the links that carry several frames as one buffer
    (testbed/run/segmentation_offload.py). Each of these links has a rate, and a native switch at
    one end or both.
    """

    def __init__(
        self,
        topology: Topology,
        seed: int,
        scratch: Path,
        logs: Path,
        pcap_dir: Path | None = None,
        faults: Sequence[Fault] = (),
        buffered: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.topology = topology
        self.seed = seed
        self.scratch = scratch
        self.logs = logs
        self.pcap_dir = pcap_dir
        self.mininet: Any = None
        self._faults = tuple(faults)
        self._buffered = frozenset(buffered)
        self._carried: Queues | None = None
        self._senders = links.senders(topology, _delays_at_times(faults))
        self._delaying: dict[str, dict[int, links.Delay]] = {}
        self._impaired: dict[str, ImpairedDirection] = {}
        self._port_drops: dict[str, PortDrop] = {}
        self._switches: dict[str, RunningSwitch] = {}
        self._processes: list[NodeProcess] = []

    def start_switch(self, name: str, target: Target, timeout_s: float = 60.0) -> RunningSwitch:
        """Does the same as `start_switches` for one switch. The switch may be one that
        `stop_switch` has ended."""
        return self.start_switches({name: target}, timeout_s)[name]

    def start_switches(
        self, targets: Mapping[str, Target], timeout_s: float = 60.0
    ) -> dict[str, RunningSwitch]:
        """Starts the switches' programs at the same time, waits until they answer, and gives them
        their pipelines.

        Raises NodeFailed, with command, log and likely cause, if a program ends or does not answer
        in time.
        """
        started = []
        for name, target in targets.items():
            setting = self._setting(name)
            _refuse_drops(setting, target)
            process = self.spawn(name, target.command(setting), name=f"switch-{name}")
            started.append((setting, target, process))
        for setting, target, process in started:
            switch = start_switch(setting, target, process, timeout_s)
            self._stack.callback(switch.close)
            self._switches[setting.name] = switch
        return {name: self._switches[name] for name in targets}

    def stop_switch(self, name: str) -> None:
        """Kills a switch's program, which loses its registers and entries. `check` does not report
        a switch that was stopped in this way."""
        switch = self._switches.pop(name)
        switch.close()
        switch.process.signal_group(signal.SIGKILL)
        switch.process.wait()

    def _setting(self, name: str) -> SwitchSetting:
        return SwitchSetting(
            name=name,
            device_id=next(s.device_id for s in self.topology.switches if s.name == name),
            ports={port: interface_name(name, port) for port in self.topology.ports(name)},
            scratch=self.scratch,
            pcap_dir=self.pcap_dir,
            namespace_pid=self.mininet[name].pid,
            drops=tuple(drop for drop in self._port_drops.values() if drop.switch == name),
        )

    def spawn(
        self,
        node: str,
        command: Sequence[str],
        name: str,
        environment: Mapping[str, str] | None = None,
    ) -> NodeProcess:
        """Starts a program in a node's namespace. Its output goes to `<logs>/<name>.log`.

        environment: variables that are added to those of this process. The program is stopped when
        the network ends.
        """
        log = self.logs / f"{name}.log"
        with log.open("ab") as output:
            popen = self.mininet[node].popen(
                list(command),
                mncmd=["mnexec", "-a", str(self.mininet[node].pid)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        put_first(popen.pid)
        process = NodeProcess(node, name, command, log, popen)
        self._processes.append(process)
        return process

    def check(self) -> None:
        """Raises NodeFailed if a switch has ended since it was started."""
        for switch in self._switches.values():
            status = switch.process.poll()
            if status is not None:
                process = switch.process
                what = f"the switch {exit_in_words(status)}"
                killed = status == -signal.SIGKILL
                raise NodeFailed(switch.name, what, process.command, process.log, killed=killed)

    # The faults of links, as in testbed/run/backend.py; each is one of those given at the start.

    def expect_fault(self, fault: Fault) -> None:
        """Replaces the eBPF programs of the directions that a fault concerns, so that it can begin.
        Raises ValueError if the fault would be a delay, for which links have to be built, or if
        eBPF is not allowed."""
        if not isinstance(fault.action, LinkDown | Impair):
            return
        if isinstance(fault.action, Impair) and isinstance(fault.action.impairment, links.DELAYS):
            later = "name it under `faults:` in the scenario, or use --set backend=virtual"
            raise ValueError(f"{fault.kind}: real links are built for their delays: {later}")
        self._faults = (*self._faults, fault)
        link = self.topology.link(fault.action.link)
        for direction, _, receiver, settings in link.directions():
            if direction in self._port_drops:
                raise ValueError(f"{fault.kind} needs eBPF, which is not allowed here: use root")
            rules = direction_rules(link, direction, settings, self.seed, self._faults)
            if rules.rules or rules.downs:
                self._impair(receiver, rules)

    def set_link_down(self, fault: int, link: str, down: bool) -> None:
        for name, _, _, _ in self.topology.link(link).directions():
            self._impaired[name].switch(fault, down)

    def set_rate(self, fault: int, directions: Sequence[str], rate_bps: int | None) -> None:
        for name in directions:
            node, sender = self._senders[name]
            with network_namespace(self.mininet[node].pid):
                _batch("tc", sender.rate_lines(rate_bps))

    def set_impairment(
        self, fault: int, link: str, directions: Sequence[str], impairment: Impairment, on: bool
    ) -> None:
        for name in directions:
            if isinstance(impairment, links.DELAYS):
                self._delay(name, fault, impairment if on else None)
            else:
                self._impaired[name].switch(fault, on)

    def statistics(self) -> NetworkStatistics:
        """Reads every counter of links, switches and processes. It can be called repeatedly."""
        switches = tuple(switch.statistics() for switch in self._switches.values())
        counts = {name: program.counts() for name, program in self._impaired.items()}
        counts |= link_counters.port_counts(self._port_drops, switches)
        sent = link_counters.sent_by_switches(self.topology, self._buffered, switches)
        return NetworkStatistics(
            directions=link_counters.read_directions(
                self.topology, self._pids(), counts, self._buffered, sent
            ),
            switches=switches,
            cpu_s=self._cpu_s(),
        )

    def carried_bytes(self) -> dict[str, int]:
        """Returns by direction the bytes that have left the sender's queue. It is fast because it
        starts no program."""
        carried = link_counters.carried_bytes(self.topology, self._pids())
        if self._carried:
            now_ns = time.monotonic_ns()
            rows = self._carried.look(now_ns)
            carried |= {name: rows[name][1] for name in self._buffered_directions()}
        return carried

    def _buffered_directions(self) -> list[str]:
        return [
            name
            for link in self.topology.links
            if link.name in self._buffered
            for name, _, _, _ in link.directions()
        ]

    def queues(self) -> Queues:
        """Returns an object that reads, as often as it is asked, how many frames wait in front of
        links. It must be closed after use."""
        return Queues(self.topology, self._pids())

    def _cpu_s(self) -> dict[str, float]:
        """Returns the processor time used so far, by name of the program. A restarted program has
        the same name as before."""
        times: dict[str, float] = {}
        for process in self._processes:
            times[process.name] = times.get(process.name, 0.0) + process.cpu_s()
        return times

    def _build(self) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        # Imported here: it costs 70 ms, which `list`, `check` and `clean` need not pay.
        from agglab.testbed.real.mininet_nodes import build_mininet, stop_nodes

        self.mininet = build_mininet(self.topology)
        self._stack.callback(stop_nodes, self.mininet)
        self._stack.callback(lambda: stop_all(self._processes))
        _batch("ip", links.create_lines(self.topology, self._pids(), self._buffered))
        for node, pid in self._pids().items():
            with network_namespace(pid):
                self._configure(node)
        waiting = links.first_ends(self.topology, list(self._pids()))
        for node, pid in self._pids().items():
            with network_namespace(pid):
                interfaces.wait_until_running(waiting[node])
                self._switch_offloads_off(node)
                interfaces.handled_by_one_processor(self._delayed_to(node), self.scratch)
        self._impair_links()
        ips = {host.name: host.ip for host in self.topology.hosts}
        nodes_file.write(self.scratch, self.logs.parent, self._pids(), ips)
        if self._buffered:
            self._carried = self._stack.enter_context(contextlib.closing(self.queues()))

    def _switch_offloads_off(self, node: str) -> None:
        for link in self.topology.links:
            own = [end.interface for end in (link.a, link.b) if end.node == node]
            if link.name in self._buffered:
                interfaces.offloads_off(own, interfaces.OFFLOAD_COMMANDS_BUFFERED)
            else:
                interfaces.offloads_off(own)

    def _impair_links(self) -> None:
        """Applies impairments by eBPF. If eBPF is not allowed, switches make the losses at their
        ports instead."""
        with network_namespace(next(iter(self._pids().values()))):
            by_port = impaired.refused() is not None
        switches = {switch.name for switch in self.topology.switches}
        for link in self.topology.links:
            for direction, sender, receiver, settings in link.directions():
                rules = direction_rules(link, direction, settings, self.seed, self._faults)
                if by_port and rules.rules and rules.only_loss:
                    self._port_drops[direction] = rules.at_port(sender, receiver, switches)
                elif rules.rules or rules.downs:
                    self._impair(receiver, rules)

    def _impair(self, receiver: LinkEnd, rules: DirectionRules) -> None:
        replaced = self._impaired.get(rules.direction)
        with network_namespace(self.mininet[receiver.node].pid):
            program = ImpairedDirection(receiver.interface, rules, replaced)
        self._impaired[rules.direction] = program
        self._stack.callback(program.close)

    def _delay(self, direction: str, fault: int, delay: links.Delay | None) -> None:
        """Sets the delay that a fault adds to a direction from now on; None if the fault adds no
        delay any more."""
        delaying = self._delaying.setdefault(direction, {})
        delaying.pop(fault, None)
        if delay is not None:
            delaying[fault] = delay
        node, sender = self._senders[direction]
        added = [delaying[number] for number in sorted(delaying)]
        with network_namespace(self.mininet[node].pid):
            self._shape(sender.delay_lines(added), sender.distribution(added))

    def _shape(self, lines: Sequence[str], distributions: Mapping[str, str]) -> None:
        for name, text in distributions.items():
            (self.scratch / name).write_text(text)
        _batch("tc", lines, {"TC_LIB_DIR": str(self.scratch)})

    def _configure(self, node: str) -> None:
        """Configures the inside of a node's namespace before its first frame."""
        interfaces.set_sysctls()
        own = [sender for sending, sender in self._senders.values() if sending == node]
        distributions = ChainMap(*(sender.distribution() for sender in own))
        self._shape([line for sender in own for line in sender.lines()], distributions)
        _batch("ip", links.node_lines(self.topology, node))

    def _delayed_to(self, node: str) -> list[str]:
        """Returns the interfaces of a node that receive frames which netem has delayed."""
        return [
            receiver.interface
            for link in self.topology.links
            for name, _, receiver, _ in link.directions()
            if receiver.node == node and self._senders[name][1].delayed
        ]

    def _interfaces(self, node: str) -> list[str]:
        return [interface_name(node, port) for port in self.topology.ports(node)]

    def _pids(self) -> dict[str, int]:
        return {name: node.pid for name, node in self.mininet.items()}


def _refuse_drops(setting: SwitchSetting, target: Target) -> None:
    if setting.drops and not isinstance(target, NativeTarget):
        what = "eBPF, without which only `target: native` can drop frames"
        raise MachineLacks(what, "run as root, or remove `loss` or `target` from the scenario")


def _delays_at_times(faults: Sequence[Fault]) -> dict[str, list[links.Delay]]:
    """Returns by direction name the delays that faults may add to it."""
    found: dict[str, list[links.Delay]] = {}
    for fault in faults:
        if isinstance(fault.action, Impair) and isinstance(fault.action.impairment, links.DELAYS):
            for name in fault.action.directions:
                found.setdefault(name, []).append(fault.action.impairment)
    return found


def _batch(
    program: str, lines: Sequence[str], environment: Mapping[str, str] | None = None
) -> None:
    """Passes lines to `ip -batch -` or `tc -batch -`. If that fails, raises an AssertionError with
    the program's output."""
    if not lines:
        return
    done = subprocess.run(
        [program, "-batch", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == 0, f"{program} -batch: {done.stderr.strip()} in\n" + "\n".join(lines)
