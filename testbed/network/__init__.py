"""The only part of the project that touches the kernel: namespaces, links, losses, switches.

How a run uses it:

    missing = lacks(topology)                             # before anything starts; exit 3
    code = isolated(run)                                  # run(scratch: Path) -> exit code
    with MininetNetwork(topology, seed, scratch, logs) as network:      # inside run()
        switch = network.start_switch("s1", NativeTarget(program_json, p4info))
        switch.write_entries(job_entries(topology, "s1", jobs))       # of agglab.testbed.plan
        agent = network.spawn("h1", argv, name="agent-h1")              # NodeProcess
        network.check()                                   # raises NodeFailed if a switch died
        statistics = network.statistics()

An error that a user can cause or cure is raised as MachineLacks or NodeFailed. Its message is one
line. NodeFailed also has the command and the last lines of its log.
"""

from agglab.testbed.errors import MachineLacks, NodeFailed
from agglab.testbed.impairments import drop_numbers
from agglab.testbed.network.isolation import isolated
from agglab.testbed.network.machine import lacks
from agglab.testbed.network.mininet_network import MininetNetwork
from agglab.testbed.network.process import NodeProcess
from agglab.testbed.network.targets import NativeTarget, RunningSwitch, Target
from agglab.testbed.network.targets import facts as target_facts
from agglab.testbed.network.targets import require as require_target
from agglab.testbed.statistics import DirectionStatistics, NetworkStatistics, SwitchStatistics

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
