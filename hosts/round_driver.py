"""Drives an endpoint through rounds over its socket.

Before each receive call, the driver waits for a moment in which several datagrams can arrive. If C
code can drive the endpoint (native_endpoint.py), native/drive.c does so, and Python runs only when
a hook is due. This module imports only other modules of `hosts`.
"""

from __future__ import annotations

import time

from agglab.hosts import library
from agglab.hosts.coalescing import ReceiveCoalescing
from agglab.hosts.driver import Link
from agglab.hosts.endpoint import NEVER_NS, Endpoint
from agglab.hosts.errors import AllReduceError, RoundTimeout
from agglab.hosts.native_endpoint import NativeEndpoint
from agglab.hosts.native_structures import Drive, Step
from agglab.hosts.part import NO_HOOKS, Hooks

PROGRESS_INTERVAL_NS = 200_000_000


class RoundDriver:
    """Drives the rounds of one endpoint over one link."""

    def __init__(self, endpoint: Endpoint, link: Link, hooks: Hooks = NO_HOOKS) -> None:
        self._endpoint, self._link, self._hooks = endpoint, link, hooks
        coalescing = ReceiveCoalescing(link.buffer_packets)
        self._exchange: _NativeExchange | _Exchange
        if isinstance(endpoint, NativeEndpoint):
            self._exchange = _NativeExchange(endpoint, link, coalescing)
        else:
            self._exchange = _Exchange(endpoint, link, coalescing)

    def run(self) -> None:
        """Drives the round that the endpoint has begun until it is done, and calls the hooks
        on_progress and on_batch (part.Hooks), on_progress for the first time after 0.1 s.

        Raises AllReduceError. After this error the slots of the job's workers are no longer in
        step, and the worker cannot be used any more.
        """
        received = self._endpoint.counters["received"]
        try:
            self._run()
        except RoundTimeout as error:
            message = str(error) + self._circumstances(received)
            raise RoundTimeout(message, error.missing) from None

    def _run(self) -> None:
        hooks, endpoint = self._hooks, self._endpoint
        # Half an interval early: who looks at the end of an interval finds a report of every
        # worker.
        report_ns = time.monotonic_ns() + PROGRESS_INTERVAL_NS // 2
        at_once_ns = 0 if hooks.on_batch else NEVER_NS
        batch_ns = at_once_ns
        while not endpoint.done and self._exchange(report_ns, min(batch_ns, report_ns)):
            if hooks.on_batch:
                batch_ns = hooks.on_batch() or at_once_ns
            now_ns = time.monotonic_ns()
            if now_ns >= report_ns:
                report_ns = now_ns + PROGRESS_INTERVAL_NS
                if hooks.on_progress:
                    hooks.on_progress(now_ns)
                # A command of the testbed may have changed what on_batch does.
                batch_ns = at_once_ns

    def _circumstances(self, received_before: int) -> str:
        """Returns the end of the error message for a round that received no more results: whether
        no packet came at all, and the network's last error."""
        known = ""
        if self._endpoint.counters["received"] == received_before:
            known = f"; no packet at all came from {self._link.names()}"
        if self._link.last_error:
            known += f"; the network's last error was: {self._link.last_error}"
        return known


class _Exchange:
    """Sends and receives the packets of an endpoint whose steps are in Python."""

    def __init__(self, endpoint: Endpoint, link: Link, coalescing: ReceiveCoalescing) -> None:
        self._endpoint, self._link, self._coalescing = endpoint, link, coalescing

    def __call__(self, wait_end_ns: int, return_ns: int) -> bool:
        """Sends what is due, waits for packets until `wait_end_ns` at the latest, and takes them.
        Returns False if the round ended before the wait. The parameter `return_ns` is not used."""
        endpoint, now_ns = self._endpoint, time.monotonic_ns()
        self._link.send(endpoint.poll(now_ns))
        if endpoint.done:  # what it had to send was the last of the round
            return False
        wait_ns = max(0, min(endpoint.deadline_ns, wait_end_ns) - time.monotonic_ns())
        gather_ns = min(wait_ns, self._coalescing.wait_ns(endpoint.in_flight))
        inbox = self._link.receive(gather_ns, wait_ns)
        now_ns = time.monotonic_ns()
        self._coalescing.results_arrived(now_ns, endpoint.on_datagrams(now_ns, inbox))
        return True


class _NativeExchange:
    """Sends and receives the packets of an endpoint whose steps are in C."""

    def __init__(self, endpoint: NativeEndpoint, link: Link, coalescing: ReceiveCoalescing) -> None:
        self._endpoint, self._link, self._coalescing = endpoint, link, coalescing
        self._native = library.load()
        self._drive = Drive(endpoint.head.address, link.address, coalescing.address)

    def __call__(self, wait_end_ns: int, return_ns: int) -> bool:
        """Exchanges packets until the round is done, until a wait brings none, or, after packets
        came, until `return_ns`. No wait is longer than until `wait_end_ns`. Returns True."""
        error = -self._native.drive_round(self._drive.address, wait_end_ns, return_ns)
        if error:
            raise self._failure(error)
        if self._endpoint.head.needs_python:
            self._endpoint.act()
        return True

    def _failure(self, error: int) -> AllReduceError:
        if self._drive.step == Step.POLLING:
            return self._endpoint.failure(error)
        if self._drive.step == Step.SENDING:
            return self._link.cannot_send(error)
        return self._link.cannot_receive(error)
