"""The workers of the system SwitchML.

Settings: lanes, slots, window (null: chosen by the link's rate), first_tag, aggregator ([address,
port]) and, optionally, fixed_point: the keys of fixed_point.FixedPoint. Without fixed_point,
floats become integers by the exponent of their chunk alone. With the setting wire_bits,
contributions carry narrow values (hosts.slots.Job). With the settings deadline_ns and sets, sums
may lack workers (docs/partial-sums.md).
"""

from __future__ import annotations

from agglab.hosts import own_worker, shared, wire
from agglab.hosts.all_reduce import Reducer
from agglab.hosts.driver import default_window
from agglab.hosts.part import Hooks, Part
from agglab.systems.switchml.fixed_point import FixedPoint
from agglab.systems.switchml.state import LIBRARY
from agglab.systems.switchml.worker import Job, Worker

QUANTISES = True
"""Whether floats are summed as integers."""

build = LIBRARY.build


def endpoint(part: Part) -> Worker:
    """Returns the endpoint of one worker, a state machine without a socket."""
    has, window = part.settings, _window(part)
    timing = shared.timing_of(part, has["lanes"], window)
    agreed = part.job, part.workers, has["lanes"], has["slots"], window, has["first_tag"]
    job = Job(*agreed, has.get("wire_bits"), has.get("deadline_ns"), has.get("sets", 8))
    host, port = has["aggregator"]
    return Worker(job, timing, (host, port), FixedPoint(**has.get("fixed_point", {})))


def reducer(part: Part, hooks: Hooks) -> Reducer:
    """Returns the reducer of one worker, which has a socket. It is an object of the user's worker
    class if the job names one."""
    has, window = part.settings, _window(part)
    if "fixed_point" in has or "deadline_ns" in has:
        assert not part.worker
        return Reducer(endpoint(part), part.bind, hooks)
    host, port = has["aggregator"]
    return own_worker.load(part.worker)(
        part.job,
        part.rank,
        part.workers,
        has["lanes"],
        has["slots"],
        part.bind,
        (host, port),
        window,
        has["first_tag"],
        part.give_up_s,
        on_progress=hooks.on_progress,
        on_batch=hooks.on_batch,
        first_timeout_s=shared.first_timeout_of(part, has["lanes"], window),
    )


def _window(part: Part) -> int:
    has = part.settings
    window: int | None = has["window"]
    frame_bytes = wire.frame_bytes(has["lanes"])
    return window or default_window(frame_bytes, has["slots"], part.link_rate_bps, part.delays_s)
