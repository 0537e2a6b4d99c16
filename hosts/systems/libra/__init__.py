"""Libra: parameter servers, in front of which switches sum the keys that are hot:
docs/systems/libra.md.

Settings: lanes, window, session, servers (how many), hot, sample_every, fraction_bits, peers
([address, port]: of a worker all servers and, if anything is hot, the switch; of a server all
workers, and where switches take results), and of a server its index, the racks ([peer that is told,
[ranks behind a switch that sums]]), and how many keys there are at most (`keys`)."""

from __future__ import annotations

from agglab.hosts.endpoint import Endpoint
from agglab.hosts.part import SERVER, Part
from agglab.hosts.systems import shared
from agglab.hosts.systems.libra.job import LibraJob
from agglab.hosts.systems.libra.server import LibraServer, Rack, Room
from agglab.hosts.systems.libra.worker import LibraWorker

AGREED = ("servers", "lanes", "window", "hot", "sample_every", "fraction_bits", "session")


def endpoint(part: Part) -> Endpoint:
    """The state machine of one worker or server."""
    has = part.settings
    agreed = {name: has[name] for name in AGREED}
    is_float = part.work.dtype == "float32"
    job = LibraJob(job=part.job, workers=part.workers, is_float=is_float, **agreed)
    if part.role == SERVER:
        racks = tuple(Rack(told, tuple(ranks)) for told, ranks in has["racks"])
        room = Room(has["keys"], part.work.elements, racks)
        return LibraServer(job, has["index"], part.peers, room)
    timing = shared.timing_of(part, has["lanes"], has["window"])
    return LibraWorker(job, part.rank, part.peers, timing)
