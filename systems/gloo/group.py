"""The Gloo process group of one session, which PyTorch makes of the session's members, and the TCP
connections between them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from torch import distributed

from agglab.hosts.endpoint import Address
from agglab.hosts.errors import AllReduceError
from agglab.hosts.part import Part
from agglab.systems.gloo import tcp

SPARE_S = 5.0
"""The time in seconds by which Gloo's timeout exceeds the worker's. So the worker gives up first,
because its error message says more."""
NO_NAMES = "timeout:1 attempts:1"
"""Options of resolv.conf(5) that keep name look-ups short. PyTorch looks up the names of addresses,
but the hosts here have no name server."""


class Group:
    """The Gloo process group of one session. A separate thread makes it, because Gloo blocks until
    all members have come.

    Settings: peers ([address, port] of all members by rank; the port is that of the first member's
    store), session, congestion_control.
    """

    def __init__(self, part: Part) -> None:
        self._part, self._peers = part, part.peers
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._failure = ""
        self._made: Any = None
        self._connections: Mapping[int, tcp.Connection] = {}
        threading.Thread(target=self._run, name="gloo-join", daemon=True).start()

    def joined(self, within_s: float) -> bool:
        """Waits for at most `within_s` seconds until all members are connected, and returns whether
        they are. Raises AllReduceError if the group could not be made."""
        if not self._done.wait(within_s):
            return False
        if self._failure:
            raise AllReduceError(self._failure)
        return True

    @property
    def connections(self) -> Mapping[int, tcp.Connection]:
        """The connections to the other members, by rank. It is empty until all members are
        connected."""
        return self._connections

    @property
    def peers(self) -> Sequence[Address]:
        """The addresses of all members, by rank."""
        return self._peers

    def start_sum(self, array: Any) -> Any:
        """Begins to sum a tensor over all members, in place. Returns a `torch.distributed.Work`."""
        return self._made.allreduce([array])

    def break_off(self) -> None:
        """Ends every connection of this member, so that what Gloo is doing fails here and at the
        other members. May be called twice."""
        with self._lock:
            self._closed = True
            ours = list(self._connections.values()) or list(self._open_connections())
        for connection in ours:
            connection.break_off()

    def close(self) -> None:
        """Ends every connection and lets Gloo's threads end. Gloo may notice this late, and the
        method does not wait for it."""
        self.break_off()
        made, self._made = [self._made], None
        threading.Thread(target=made.clear, name="gloo-leave", daemon=True).start()

    def _run(self) -> None:
        try:
            made = self._join()
            with self._lock:
                self._connections = self._found()
                self._made = made
                if not self._closed:
                    return
            self.close()
        except (RuntimeError, OSError) as error:  # PyTorch's are RuntimeErrors
            self._failure = f"Gloo cannot connect the workers: {_first_line(error)}"
        finally:
            self._done.set()

    def _join(self) -> Any:
        os.environ.setdefault("RES_OPTIONS", NO_NAMES)
        part = self._part
        patience = timedelta(seconds=part.give_up_s + SPARE_S)
        session = f"session{part.settings['session']}/"
        store = distributed.PrefixStore(session, _store(*self._peers[0], part.rank == 0, patience))
        if store.add(f"started{part.rank}", 1) > 1:
            raise RuntimeError("this worker was started again in a session that had begun")
        options = distributed.ProcessGroupGloo._Options()
        device = distributed.ProcessGroupGloo.create_device(hostname=part.bind[0])
        options._devices, options._threads, options._timeout = [device], 1, patience
        return distributed.ProcessGroupGloo(store, part.rank, part.workers, options)

    def _found(self) -> Mapping[int, tcp.Connection]:
        """Returns the connections by rank. Raises RuntimeError unless there is one connection with
        each other member."""
        ranks = {host: rank for rank, (host, _) in enumerate(self._peers)}
        found = {ranks[each.peer[0]]: each for each in self._open_connections()}
        if len(found) != self._part.workers - 1:
            raise RuntimeError(f"{len(found)} connections; {self._part.workers - 1} are needed")
        for connection in found.values():
            connection.control_congestion_by(self._part.settings["congestion_control"])
        return found

    def _open_connections(self) -> list[tcp.Connection]:
        """Returns the open connections that Gloo has in this process. All of them belong to this
        session, because a process has one session at a time."""
        own = self._part.rank
        others = [host for rank, (host, _) in enumerate(self._peers) if rank != own]
        found = tcp.connections(others, but_port=self._peers[0][1])
        return [each for each in found if each.info().established]


def _store(host: str, port: int, is_first: bool, patience: timedelta) -> Any:
    """Returns the store at the first member's host, in which members find each other's addresses.
    The process of the first member makes the store once and uses it for all its sessions."""
    if is_first:
        return _own_store(host, port)
    return distributed.TCPStore(host, port, None, False, patience, wait_for_workers=False)


@cache
def _own_store(host: str, port: int) -> Any:
    return distributed.TCPStore(host, port, None, True, wait_for_workers=False)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
