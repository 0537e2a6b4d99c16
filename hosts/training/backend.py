"""The PyTorch backend "agglab". All-reduces in groups of all ranks go through the system, by way of
the agent of the host. All other operations are passed to a process group of Gloo that each group
contains (by_gloo.py). See docs/training.md.

The entry point (autoload.py) makes the name known, and so does an import of torch.py. The backend
works with PyTorch 2.4 and later. If a release of PyTorch lacks a method that is named here, the
group lacks it too.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count as count_from
from typing import Any

import torch
from torch import distributed
from torch._C._distributed_c10d import Work

from agglab.hosts.training import client, tensors
from agglab.hosts.training.by_gloo import Call, perform
from agglab.hosts.training.client import Client, TrainingError
from agglab.hosts.training.environment import BACKEND
from agglab.hosts.training.jobs import Job
from agglab.hosts.training.layout import share_memory
from agglab.hosts.training.order import PIECE_ELEMENTS, VOTE_DTYPE, vote_elements
from agglab.hosts.training.priorities import current

DELEGATED = (
    *("broadcast", "reduce", "scatter", "barrier", "monitored_barrier"),
    *("gather", "gather_into_tensor", "gather_single"),
    *("allgather", "_allgather_base", "allgather_coalesced", "allgather_into_tensor_coalesced"),
    *("all_gather_single", "all_gather_single_coalesced"),
    *("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced"),
    *("reduce_scatter_single", "reduce_scatter_single_coalesced"),
    *("alltoall", "alltoall_base", "all_to_all_single"),
    *("send", "recv", "recv_anysource"),
)
"""All collectives except all-reduce. C++ would also send those that are not named here to Gloo. But
it would keep Python's lock meanwhile, so that a collective that waits would stop all threads."""
SYSTEM, COLLECTIVE = "system", "collective"
"""Ways of a call: through the system, and by Gloo because it is no all-reduce."""
OWN = ("allreduce", "allreduce_coalesced", "abort", "shutdown", "set_timeout", "get_group_store")
KEPT = (
    *("rank", "size", "name", "options", "group_name", "group_desc", "bound_device_id"),
    *("boxed", "unbox", "supports_abort_hooks", "supports_completion_hooks"),
    *("split_group", "merge_remote_group", "use_pg_for_symm_mem_rendezvous"),
    *("_register_backend", "_get_backend", "_get_backend_name", "_device_types", "_id"),
    *("_set_default_backend", "_backend_id", "_has_hooks", "_register_on_completion_hook"),
    *("_start_coalescing", "_end_coalescing", "_enable_collectives_timing"),
    *("_set_group_name", "_set_group_desc", "_wait_for_pending_works"),
    *("_get_sequence_number_for_group", "_set_sequence_number_for_group"),
    *("get_backend", "_add_ephemeral_timeout", "supports_window", "new_window"),
    *("supports_reconfigure", "get_reconfigure_handle", "reconfigure"),
    *("register_abort_hook", "register_pre_hook", "register_post_hook"),
    *("unregister_abort_hook", "unregister_pre_hook", "unregister_post_hook"),
)
"""Methods that are not collectives and remain PyTorch's own. A test compares all names with those
of the class."""


_numbers = count_from(1)
"""Numbers of the groups of all ranks, which all ranks make in the same order."""


class ReducedWork(Work):
    """An all-reduce under way, as PyTorch sees it. C++ code and callbacks use its future."""

    def __init__(self, result: list[Any]) -> None:
        super().__init__()
        self._result = result
        self._error: str | None = None
        self._raw: Any = torch.futures.Future()
        self._future = self._raw.then(self._outcome)

    def end(self, error: str | None) -> None:
        """Completes the all-reduce. error: why it failed, or None. The callbacks run within this
        call."""
        self._error = error
        self._raw.set_result(None)

    def get_future(self) -> Any:
        """Returns a future whose value is the list of tensors."""
        return self._future

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits until the reduction has ended. Raises RuntimeError, with a message of one line, if
        it failed. The waiting time is limited by the agent and not by `timeout`."""
        self._raw.wait()
        if self._error:
            raise RuntimeError(self._error)
        return True

    def synchronize(self) -> None:
        """Does the same as `wait`, because CPU tensors have no streams."""
        self.wait()

    def is_completed(self) -> bool:
        """Returns whether the reduction has ended, with or without a result."""
        return self._raw.done()

    def is_success(self) -> bool:
        """Returns whether the reduction has ended with a result."""
        return self._raw.done() and self._error is None

    def result(self) -> list[Any]:
        """Returns the tensors, which hold the result once the reduction has ended."""
        return self._result

    def _outcome(self, _: Any) -> list[Any]:
        # A future's set_exception is for Python's eyes alone: C++ would take it for a result.
        if self._error:
            raise RuntimeError(self._error)
        return self._result


class ProcessGroup(distributed.ProcessGroup):
    """One process group of PyTorch. gloo: the backend of the Gloo group that it contains. If not
    all ranks of the job are members, all operations are passed to Gloo."""

    def __init__(self, store: Any, rank: int, size: int, gloo: Any, agent: Client) -> None:
        super().__init__(rank, size)
        self._store, self._agent = store, agent
        self._is_whole = size == agent.terms.workers
        self._number = next(_numbers) if self._is_whole else 0
        self._inner = distributed.ProcessGroup(rank, size)
        cpu, kind = torch.device("cpu"), distributed.ProcessGroup.BackendType.GLOO
        for group in (self._inner, self):
            # The names of groups are kept by backends: functional collectives look for them there.
            group._register_backend(cpu, kind, gloo)
            if hasattr(group, "_set_default_backend"):  # 2.15 asks for it, 2.4 does not have it
                group._set_default_backend(kind)

    def getBackendName(self) -> str:
        """Returns the name of the backend. C++ calls this method by this name."""
        return BACKEND

    def get_group_store(self) -> Any:
        """Returns the key-value store of PyTorch by which the members of the group find each
        other."""
        return self._store

    def allreduce(self, given: Any, *arguments: Any, **named: Any) -> Any:
        """Reduces one tensor or a list of tensors in place. Accepts options or `op=`, as the
        function of PyTorch's c10d does."""
        return self._all_reduce(Call("allreduce", (given, *arguments), named))

    def allreduce_coalesced(self, given: Any, *arguments: Any, **named: Any) -> Any:
        """Reduces a list of tensors, as `allreduce` does."""
        return self._all_reduce(Call("allreduce_coalesced", (given, *arguments), named))

    def _all_reduce(self, call: Call) -> Any:
        listed, op = call.written, _operation(call.arguments[1:], call.named)
        is_average = op == distributed.ReduceOp.AVG
        if why := self._why_by_gloo(listed, op, is_average):
            return self._by_gloo(call, why)
        count(self._agent, call, SYSTEM)
        return start(self._agent, listed, is_average, self._number)

    def _by_gloo(self, call: Call, why: str) -> Any:
        count(self._agent, call, why)
        return perform(self._inner, call)

    def _why_by_gloo(self, listed: Sequence[Any], op: Any, is_average: bool) -> str | None:
        """Returns a word that says why Gloo must perform an all-reduce, or None if it goes through
        the system."""
        if not self._is_whole:
            return "group"
        if not is_average and op != distributed.ReduceOp.SUM:
            return "op"
        return tensors.why_not(listed, is_average, self._agent.terms.dtypes) if listed else "empty"

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of the operations that are passed to Gloo."""
        self._inner.set_timeout(timeout)

    def abort(self) -> None:
        """Aborts the Gloo operations in progress, which then have no result."""
        self._inner.abort()

    def shutdown(self) -> None:
        """Shuts the Gloo group down. The agent gets the script's counts, but no goodbye, because
        other groups may still be in use."""
        self._inner.shutdown()
        with contextlib.suppress(TrainingError):  # an error that the script has had already
            self._agent.tell_counts()


def count(agent: Client, call: Call, way: str) -> None:
    """Counts a collective and its bytes. way: SYSTEM, or a word that says why Gloo performs it."""
    agent.count(f"{call.public_name}.{way}")
    agent.count(f"{call.public_name}.{way}.bytes", call.size_bytes)


def start(agent: Client, listed: Sequence[Any], is_average: bool, group: int = 0) -> ReducedWork:
    """Begins to sum tensors over all ranks, in place, with the priority of the current thread.
    is_average: whether to divide the sums by the number of ranks. group: a number of the process
    group, which all ranks have to agree on.
    Raises RuntimeError if elements of the tensors share memory, and for a priority if the ranks
    cannot vote."""
    if share_memory(listed):
        raise RuntimeError(
            "cannot reduce tensors whose elements share memory (expand?): pass a clone()"
        )
    work = ReducedWork(list(listed))
    urgency, most = current(), agent.terms.elements
    if urgency is not None:
        _check_can_vote(agent)
        most = min(most, PIECE_ELEMENTS)
    divide_by = agent.terms.workers if is_average else 1
    made = tensors.pieces(listed, most, divide_by, agent.terms.dtypes)
    if made:
        agreement = tensors.agreement_of(listed, is_average, group)
        agent.submit(Job(made, work.end, urgency, agreement))
    else:
        work.end(None)
    return work


def _check_can_vote(agent: Client) -> None:
    if VOTE_DTYPE not in agent.terms.dtypes:
        raise RuntimeError(
            "an all-reduce cannot have a priority if sums may lack workers, because the ranks "
            "could not agree on an order: leave out the priority, or the scenario's deadline"
        )
    if not vote_elements(agent.terms.elements):
        raise RuntimeError(
            "an all-reduce cannot have a priority if a reduction has one value, because the ranks "
            "could not agree on an order: leave out the priority, or raise workload.elements"
        )


def create(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    """Makes a process group. PyTorch's `init_process_group` and `new_group` call this function.
    Raises TrainingError, a RuntimeError, if there is no agent."""
    agent = client.connect()
    terms = agent.terms
    if size == terms.workers and rank != terms.rank:
        raise TrainingError(f"the script's rank is {rank}; that of its agent is {terms.rank}")
    gloo = _gloo(_fresh(store, rank), rank, size, timeout, terms.address)
    group = ProcessGroup(store, rank, size, gloo, agent)
    _keep(gloo, group)
    return group


def _gloo(store: Any, rank: int, size: int, timeout: timedelta, address: str) -> Any:
    options = distributed.ProcessGroupGloo._Options()
    options._devices = [distributed.ProcessGroupGloo.create_device(hostname=address)]
    options._threads, options._timeout = 2, timeout
    made = distributed.ProcessGroupGloo(store, rank, size, options)
    made._set_sequence_number_for_group()
    return made


def _fresh(store: Any, rank: int) -> Any:
    """Returns a part of a group's store that no earlier group of the same name has used. All
    members get the same part, because each of them makes its groups of one name equally often.

    PyTorch gives the default group the same name each time, so that its keys are the same, too, and
    the store at rank 0 outlives a group (_keep). A second group would read the addresses of the
    first one, at which nobody listens any more.
    """
    return distributed.PrefixStore(f"agglab{store.add(f'agglab/{rank}', 1)}", store)


_kept: list[tuple[weakref.ref[ProcessGroup], Any]] = []


def _keep(gloo: Any, group: ProcessGroup) -> None:
    """Keeps a reference to the Gloo backend of a group, until the group is gone and the next group
    is made, or until the process ends.

    Dropping the last reference to the backend waits for the end of Gloo's threads. If Python drops
    it, Python's lock is released during this wait. If the group drops it, the lock is held, and a
    Gloo thread may need the lock at the end of its last operation. With PyTorch 2.4.1, processes
    were seen to hang at the end of destroy_process_group on a busy machine, which this would
    explain.

    The backend also keeps the server of PyTorch's store. At rank 0, destroy_process_group would end
    it. A rank that is ahead and makes its next group would then lose the connection that it has
    just made. PyTorch's next store at the same port uses the same server.
    """
    _kept[:] = [(owner, each) for owner, each in _kept if owner() is not None]
    _kept.append((weakref.ref(group), gloo))


def _operation(arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Returns the operation of an all-reduce, such as SUM. It finds it in the arguments of any
    overload of c10d's function."""
    given = named.get("opts", named.get("op", arguments[0] if arguments else None))
    if given is None:
        return distributed.ReduceOp.SUM
    return getattr(given, "reduceOp", given)


def _delegate(name: str) -> Any:
    def delegated(self: ProcessGroup, *arguments: Any, **named: Any) -> Any:
        return self._by_gloo(Call(name, arguments, named), COLLECTIVE)

    delegated.__name__ = name
    return delegated


for _name in DELEGATED:
    if hasattr(distributed.ProcessGroup, _name):
        setattr(ProcessGroup, _name, _delegate(_name))
