"""SwitchML's workers. Settings: lanes, slots, window (null: by the link's rate), first_tag,
aggregator ([address, port])."""

from __future__ import annotations

from agglab.hosts import own_worker, wire
from agglab.hosts.all_reduce import AllReducer
from agglab.hosts.driver import default_window, first_timeout_s
from agglab.hosts.part import Hooks, Part
from agglab.hosts.worker import Job, Timing, Worker

NS_PER_S = 1_000_000_000
QUANTISES = True
"""Floats are summed as integers."""


def endpoint(part: Part) -> Worker:
    """The state machine of one worker."""
    has, window = part.settings, _window(part)
    first_s = first_timeout_s(window, has["lanes"], part.link_rate_bps)
    timing = Timing(
        initial_rto_ns=round(first_s * NS_PER_S), give_up_ns=round(part.give_up_s * NS_PER_S)
    )
    job = Job(part.job, part.workers, has["lanes"], has["slots"], window, has["first_tag"])
    host, port = has["aggregator"]
    return Worker(job, timing, (host, port))


def reducer(part: Part, hooks: Hooks) -> AllReducer:
    """The same over a socket, or a worker of the user's own."""
    has, window = part.settings, _window(part)
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
        first_timeout_s=first_timeout_s(window, has["lanes"], part.link_rate_bps),
    )


def _window(part: Part) -> int:
    has = part.settings
    window: int | None = has["window"]
    frame_bytes = wire.frame_bytes(has["lanes"])
    return window or default_window(frame_bytes, has["slots"], part.link_rate_bps)
