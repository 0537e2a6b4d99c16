"""The system Libra: parameter servers behind switches (README.md). The switches sum the
values of frequent keys, which are called hot; the servers sum those of all other keys, which are
called cold.

Settings: lanes, window, session, servers (their number), hot (the number of hot keys),
sample_every, fraction_bits, peers ([address, port] of each). The peers of a worker are all servers
and, if there are hot keys, the switch. The peers of a server are all workers, and the addresses at
which switches take results.

Settings of a server only: its index; racks, each as [index of the peer that gets the rack's
answers, [ranks of the workers behind a switch that sums]]; and keys (the largest number of keys).
"""

from __future__ import annotations

from dataclasses import replace

from agglab.hosts import shared
from agglab.hosts.endpoint import Endpoint
from agglab.hosts.part import SERVER, Part
from agglab.hosts.wire import VALUE_BYTES
from agglab.systems.libra import wire
from agglab.systems.libra.job import LibraJob
from agglab.systems.libra.server import LibraServer, Rack, TableSizes
from agglab.systems.libra.state import LIBRARY
from agglab.systems.libra.worker import LibraWorker

AGREED = ("servers", "lanes", "window", "hot", "sample_every", "fraction_bits", "session")

build = LIBRARY.build


def endpoint(part: Part) -> Endpoint:
    """Returns the endpoint of one worker or server, a state machine without a socket."""
    has = part.settings
    agreed = {name: has[name] for name in AGREED}
    is_float = part.work.dtype == "float32"
    job = LibraJob(job=part.job, workers=part.workers, is_float=is_float, **agreed)
    if part.role == SERVER:
        racks = tuple(Rack(peer, tuple(ranks)) for peer, ranks in has["racks"])
        room = TableSizes(has["keys"], part.work.elements, racks)
        return LibraServer(job, has["index"], part.peers, room)
    in_flight = has["window"] * len(part.peers)  # a window of its own for each server
    values = has["lanes"] * wire.PAIR_BYTES // VALUE_BYTES
    usual = shared.timing_of(part, values, in_flight, in_step=False)
    # Cold keys for a server on the own host cross no link, but hot ones do.
    least_ns = max(usual.min_rto_ns, usual.delays_ns + usual.slack_ns)
    return LibraWorker(job, part.rank, part.peers, replace(usual, min_rto_ns=least_ns))
