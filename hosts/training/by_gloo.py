"""Collectives that Gloo performs. Gloo reads and writes memory as if each tensor were contiguous,
so every other tensor is copied before the call, and copied back when the call has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work

from agglab.hosts.training.layout import is_plain, plain_copy, share_memory, write_back

ONLY_READ = ("send",)
"""The collectives that change none of their tensors. All others write their first argument and read
the rest."""
PUBLIC_NAMES = {
    "allgather": "all_gather",
    "_allgather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all_single",
}
OUTPUT_NAMES = ("tensor", "output")
"""How the names of the arguments begin that a collective writes."""


@dataclass(frozen=True)
class Call:
    """The arguments of one call of a collective, as PyTorch's c10d takes them."""

    name: str
    arguments: Sequence[Any]
    named: Mapping[str, Any] = field(default_factory=dict)

    @property
    def public_name(self) -> str:
        """The name of the function of torch.distributed, as far as it has another one."""
        return PUBLIC_NAMES.get(self.name, self.name)

    @property
    def written(self) -> list[Any]:
        """The tensors that the call writes; it may read them too."""
        if self.name in ONLY_READ:
            return []
        named = [self.named[n] for n in self.named if n.startswith(OUTPUT_NAMES)]
        return list(_tensors([*self.arguments[:1], *named]))

    @property
    def tensors(self) -> list[Any]:
        """All tensors of the call."""
        return list(_tensors([*self.arguments, *self.named.values()]))

    @property
    def size_bytes(self) -> int:
        """The bytes of the tensors that the call reads or of those that it writes, whichever are
        more. This is the size of the whole tensor, in an all-gather as in a reduce-scatter."""
        written = {id(each) for each in self.written}
        read = [each for each in self.tensors if id(each) not in written]
        return max(_bytes(self.written), _bytes(read))


def perform(gloo: Any, call: Call) -> Any:
    """Performs a call by Gloo. Returns the Work, or None where c10d's method does. gloo: the
    process group. Raises RuntimeError if elements that the call writes share memory."""
    if share_memory(each for each in call.written if _is_strided(each)):
        raise RuntimeError(
            f"{call.public_name}: elements of the tensors to write share memory (expand?): "
            "pass a tensor of its own, such as a clone()"
        )
    copies = {id(t): plain_copy(t) for t in call.tensors if _is_strided(t) and not is_plain(t)}

    def copied(tensor: Any) -> Any:
        return copies.get(id(tensor), tensor)

    arguments = [_mapped(each, copied) for each in call.arguments]
    named = {name: _mapped(each, copied) for name, each in call.named.items()}
    work = getattr(gloo, call.name)(*arguments, **named)
    changed = [(each, copies[id(each)]) for each in call.written if id(each) in copies]
    return CopiedWork(work, call.written, changed) if changed else work


class CopiedWork(Work):
    """A collective under way whose result is copied back when it has ended. work: Gloo's own.
    result: the tensors that the caller gave. changed: pairs of a tensor and the copy that Gloo
    writes."""

    def __init__(self, work: Work, result: list[Any], changed: Sequence[tuple[Any, Any]]) -> None:
        super().__init__()
        self._work, self._result, self._changed = work, result, changed
        self._future = self._after_copying()

    def _after_copying(self) -> Any:
        """Returns a future that is done when the result was copied back. Returns None for a receive
        of Gloo, which has no future and ends only when it is waited for."""
        try:
            future = self._work.get_future()
        except RuntimeError:
            return None
        return future.then(self._copied_back)

    def _copied_back(self, done: Any) -> Any:
        value = done.value()  # raises the collective's error
        originals = {copy.data_ptr(): tensor for tensor, copy in self._changed}
        self._copy_back()
        return _mapped(value, lambda each: originals.get(each.data_ptr(), each))

    def _copy_back(self) -> None:
        """Copies the result back, when it is called for the first time."""
        changed, self._changed = self._changed, ()
        for tensor, copy in changed:
            write_back(tensor, copy)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits until the collective has ended and its result was copied back. Raises the
        RuntimeError that Gloo raises."""
        ended = self._work.wait(timeout)
        if self._future is None:
            self._copy_back()
        else:
            self._future.wait()
        return ended

    def synchronize(self) -> None:
        """Does the same as `wait`, because CPU tensors have no streams."""
        self.wait()

    def get_future(self) -> Any:
        """Returns a future whose value is what Gloo's has, with the caller's own tensors."""
        return self._work.get_future() if self._future is None else self._future

    def is_completed(self) -> bool:
        """Returns whether the collective has ended and its result was copied back."""
        return self._work.is_completed() if self._future is None else self._future.done()

    def is_success(self) -> bool:
        """Returns whether the collective has ended with a result."""
        return self.is_completed() and self._work.is_success()

    def exception(self) -> Any:
        """Returns Gloo's exception, or None."""
        return self._work.exception()

    def result(self) -> list[Any]:
        """Returns the caller's tensors, which hold the result once the collective has ended."""
        return self._result

    def _source_rank(self) -> int:
        """Returns the rank from which a receive got its tensor. PyTorch calls this method."""
        return self._work._source_rank()


def _is_strided(tensor: Any) -> bool:
    return tensor.layout is torch.strided and tensor.device.type == "cpu"


def _bytes(tensors: Sequence[Any]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def _tensors(value: Any) -> Iterator[Any]:
    """Yields the tensors in nested lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns nested lists in which each tensor is replaced by `change` of it."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return [_mapped(each, change) for each in value]
    return value
