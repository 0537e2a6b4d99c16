"""The system MLfabric, for asynchronous training (README.md).

Settings: lanes, session, servers (1, or 2 with a replica), index (of a server), order, bound,
group, ahead, divergence (in units), silence_s, cells, first_cell, past_switch, peers ([address,
port] of each). The peers of a worker are the servers, then the scheduler. Those of a server are the
workers, the scheduler, and the other server. Those of the scheduler are the workers, then the
servers.
"""

from __future__ import annotations

from dataclasses import replace

from agglab.hosts import shared
from agglab.hosts.driver import default_window
from agglab.hosts.endpoint import Endpoint
from agglab.hosts.part import SCHEDULER, SERVER, Part
from agglab.hosts.workloads import AsyncSgd
from agglab.systems.mlfabric import wire
from agglab.systems.mlfabric.agent import Agent, Answering
from agglab.systems.mlfabric.channel import WINDOW
from agglab.systems.mlfabric.policy import Policy
from agglab.systems.mlfabric.scheduler import Scheduler, SchedulerJob
from agglab.systems.mlfabric.server import Server, ServerJob
from agglab.systems.mlfabric.transport import Transport
from agglab.systems.mlfabric.worker import Worker, WorkerJob

NS_PER_S = 1_000_000_000
GROUPS_OF_SESSION = 1 << 20
SESSIONS = 1 << 11
REPAIR_NS = 50_000_000
"""The time after which a server asks again for the missing packets of a group, if no packet of the
group has come in this time."""


SILENCE_NS = 50_000_000
"""The extra time before a packet counts as lost, which is also the shortest timeout. Round trips
vary a lot, because they depend on what else the peers send and receive."""


def endpoint(part: Part) -> Endpoint:
    """Returns the endpoint of one worker, server or scheduler, a state machine without a socket."""
    has, work = part.settings, part.work
    assert isinstance(work, AsyncSgd), "the only kind of workload that this system does"
    usual = shared.timing_of(part, has["lanes"], WINDOW)
    timing = replace(usual, min_rto_ns=SILENCE_NS, slack_ns=SILENCE_NS)
    hold_ns = _hold_ns(part)
    transport = Transport(part.job, has["session"], has["lanes"], part.peers, timing, hold_ns)
    give_up_ns = round(part.give_up_s * NS_PER_S)
    return Agent(transport, _role(part, work, transport), give_up_ns)


def _hold_ns(part: Part) -> int:
    """Returns the time that the windows of all workers take on a link. A packet or its
    acknowledgement may have to wait this long behind packets to other agents."""
    if not part.link_rate_bps:
        return 0
    frame_bits = 8 * wire.frame_bytes(wire.longest_datagram_bytes(part.settings["lanes"]))
    return round(WINDOW * part.workers * frame_bits / part.link_rate_bps * NS_PER_S)


def _role(part: Part, work: AsyncSgd, transport: Transport) -> Worker | Answering:
    has = part.settings
    first_group = has["session"] % SESSIONS * GROUPS_OF_SESSION
    if part.role == SERVER:
        most = WINDOW * part.workers
        return Server(
            ServerJob(
                index=has["index"],
                servers=has["servers"],
                workers=part.workers,
                elements=work.elements,
                lanes=has["lanes"],
                divergence=has["divergence"],
                silence_ns=REPAIR_NS,
                first_group=first_group,
                in_flight=default_window(
                    wire.frame_bytes(transport.longest_bytes), most, part.link_rate_bps
                ),
            ),
            transport,
        )
    if part.role == SCHEDULER:
        job = SchedulerJob(
            workers=part.workers,
            servers=has["servers"],
            chunks=-(-work.elements // has["lanes"]),
            updates=work.updates,
            time_ns=work.time_ns,
            silence_ns=round(has["silence_s"] * NS_PER_S),
            first_group=first_group,
        )
        policy = Policy(has["order"], has["bound"], has["group"], has["divergence"])
        return Scheduler(job, policy, transport)
    names = ("servers", "lanes", "ahead", "cells", "first_cell", "past_switch")
    own = {name: has[name] for name in names}
    return Worker(WorkerJob(rank=part.rank, workers=part.workers, **own), work, transport)
