"""The Mininet network of a run: namespaces, veth links, rates, losses, and the programs inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from testbed.network.process import NodeProcess
from testbed.network.statistics import NetworkStatistics
from testbed.network.targets import RunningSwitch, Target
from topologies import Topology


class MininetNetwork:
    """A built network; use it as a context manager, inside `isolated`.

    topology: the whole of it is built, hosts and switches in network namespaces of their own.
    seed: the scenario's; losses derive from it. scratch: from `isolated`. logs: where programs' logs go.
    pcap_dir: where switches write captures, None for none.
    """

    def __init__(
        self,
        topology: Topology,
        seed: int,
        scratch: Path,
        logs: Path,
        pcap_dir: Path | None = None,
    ) -> None:
        self.topology = topology

    def __enter__(self) -> MininetNetwork:
        """Build everything and return; on an error nothing stays."""
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop every program and remove every interface and namespace."""
        raise NotImplementedError

    def start_switch(self, name: str, target: Target, timeout_s: float = 60.0) -> RunningSwitch:
        """Start the switch's program, wait until it answers, give it its pipeline. NodeFailed if it does not."""
        raise NotImplementedError

    def spawn(
        self,
        node: str,
        command: Sequence[str],
        name: str,
        environment: Mapping[str, str] | None = None,
    ) -> NodeProcess:
        """Start a program in a node's namespace; its output goes to `<logs>/<name>.log`."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise NodeFailed if a switch has ended since it was started."""
        raise NotImplementedError

    def statistics(self) -> NetworkStatistics:
        """Read every counter of links, switches and processes. Safe to call more than once."""
        raise NotImplementedError
