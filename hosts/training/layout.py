"""Where the elements of tensors lie in memory. This module imports nothing of `hosts`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def is_plain(tensor: Any) -> bool:
    """Returns whether the memory of a tensor holds just its values, in the order of its indices."""
    is_lazy = tensor.is_conj() or tensor.is_neg()  # the values are computed when they are read
    return not tensor.numel() or (tensor.is_contiguous() and not is_lazy)


def plain_copy(tensor: Any) -> Any:
    """Returns a copy of a tensor of which `is_plain` is true."""
    copy = torch.empty(tensor.shape, dtype=tensor.dtype)
    return copy.copy_(tensor.detach())


def write_back(tensor: Any, values: Any) -> None:
    """Replaces the values of a tensor, which may need gradients or be one of PyTorch's inference
    mode. This function sets that mode itself, because the mode of the script's thread does not
    apply to other threads."""
    with torch.inference_mode(tensor.is_inference()):
        tensor.detach().copy_(values)


def share_memory(tensors: Iterable[Any]) -> bool:
    """Returns whether two elements of these strided CPU tensors lie at the same place, be they of
    one tensor (as after `expand`) or of two."""
    by_storage = defaultdict(list)
    for tensor in tensors:
        if tensor.numel():
            by_storage[tensor.untyped_storage().data_ptr()].append(tensor)
    return any(_overlap(group) for group in by_storage.values())


def _overlap(tensors: Sequence[Any]) -> bool:
    """Returns whether elements of tensors with the same storage overlap. Addresses of single
    elements are compared only where strides and extents leave the question open."""
    if all(map(_steps_over_itself, tensors)) and _are_disjoint(map(_extent, tensors)):
        return False
    if any(torch._debug_has_internal_overlap(tensor) == 1 for tensor in tensors):
        return True
    starts = np.concatenate([_element_offsets(tensor) for tensor in tensors])
    sizes = np.repeat([t.element_size() for t in tensors], [t.numel() for t in tensors])
    order = np.argsort(starts)
    ends = starts[order] + sizes[order]
    return bool((starts[order][1:] < ends[:-1]).any())


def _steps_over_itself(tensor: Any) -> bool:
    """Returns whether each stride is longer than all that the shorter strides reach, so that no two
    elements share memory. Tensors whose strides interleave are answered False."""
    reached = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride <= reached:
                return False
            reached += stride * (size - 1)
    return True


def _extent(tensor: Any) -> tuple[int, int]:
    """Returns the offsets in bytes of the first element, and of the end of the last one."""
    last = sum(
        stride * (size - 1) for stride, size in zip(tensor.stride(), tensor.shape, strict=True)
    )
    item_bytes, first = tensor.element_size(), tensor.storage_offset()
    return first * item_bytes, (first + last + 1) * item_bytes


def _are_disjoint(extents: Iterable[tuple[int, int]]) -> bool:
    return all(end <= begin for (_, end), (begin, _) in pairwise(sorted(extents)))


def _element_offsets(tensor: Any) -> NDArray[np.int64]:
    """Returns the offset in bytes of each element, of shape (elements,)."""
    offsets = np.array([tensor.storage_offset()], np.int64)
    for stride, size in zip(tensor.stride(), tensor.shape, strict=True):
        offsets = (offsets[:, None] + stride * np.arange(size)).reshape(-1)
    return offsets * tensor.element_size()
