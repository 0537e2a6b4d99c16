"""The only part of the project that touches the kernel: namespaces, links, losses, switches.

How a run uses it:

    missing = lacks(topology)                             # before anything starts; exit 3
    code = isolated(run)                                  # run(scratch: Path) -> exit code
    with MininetNetwork(topology, seed, scratch, logs) as network:      # inside run()
        switch = network.start_switch("s1", NativeTarget(program_json, p4info))
        switch.write_entries(job_entries(topology, "s1", jobs))       # of
        agglab.testbed.systems.plan agent = network.spawn("h1", argv, name="agent-h1")
        # NodeProcess network.check()                                   # raises NodeFailed if a
        # switch died
        statistics = network.statistics()

An error that a user can cause or cure is raised as MachineLacks or NodeFailed. Its message is one
line. NodeFailed also has the command and the last lines of its log.
"""

from agglab.testbed.base.errors import MachineLacks, NodeFailed
from agglab.testbed.base.traffic_counters import (
    DirectionStatistics,
    NetworkStatistics,
    SwitchStatistics,
)
from agglab.testbed.real.isolation import isolated
from agglab.testbed.real.machine import lacks
from agglab.testbed.real.mininet_network import MininetNetwork
from agglab.testbed.real.process import NodeProcess
from agglab.testbed.real.targets import NativeTarget, RunningSwitch, Target
from agglab.testbed.real.targets import facts as target_facts
from agglab.testbed.real.targets import require as require_target
from agglab.testbed.run.impairments import drop_numbers

__all__ = [
    "DirectionStatistics",
    "MachineLacks",
    "MininetNetwork",
    "NativeTarget",
    "NetworkStatistics",
    "NodeFailed",
    "NodeProcess",
    "RunningSwitch",
    "SwitchStatistics",
    "Target",
    "drop_numbers",
    "isolated",
    "lacks",
    "require_target",
    "target_facts",
]
