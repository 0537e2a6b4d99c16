"""What an agent keeps of the reductions of a training for the testbed to judge: when each was, a
hash of all results, and the arrays of some. Imports NumPy only.

    <folder>/reductions.csv            number,elements,dtype,start_ns,end_ns: a line for each
    <folder>/reduction<number>/input.npy, result.npy
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

HEADER = "number,elements,dtype,start_ns,end_ns\n"
HASH_BYTES = 16


@dataclass(frozen=True)
class Sample:
    """Which reductions' arrays are kept: about one in `one_in`, chosen by the seed and the number
    alone, so that all ranks keep the same ones; at most `most`, and none for one_in = 0."""

    seed: int
    one_in: int
    most: int = 1000

    def holds(self, number: int) -> bool:
        """Whether it is chosen, whatever `most` says."""
        if not self.one_in:
            return False
        key = hashlib.blake2b(f"{self.seed}/{number}".encode(), digest_size=8).digest()
        return int.from_bytes(key, "big") % self.one_in == 0


class Records:
    """Of one training at one rank. Makes `folder`. Raises OSError where it cannot be written."""

    def __init__(self, folder: Path, sample: Sample) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._sample = folder, sample
        self._kept = 0
        self._hash = hashlib.blake2b(digest_size=HASH_BYTES)
        self._lines = (folder / "reductions.csv").open("w")
        self._lines.write(HEADER)

    def before(self, number: int, values: NDArray) -> None:
        """A reduction begins; its input is about to be overwritten."""
        if self._sample.holds(number) and self._kept < self._sample.most:
            self._kept += 1
            self._place(number).mkdir(exist_ok=True)
            np.save(self._place(number) / "input.npy", values)

    def after(self, number: int, result: NDArray, start_ns: int, end_ns: int) -> None:
        """It has ended with this result."""
        self._hash.update(f"{number} {result.size} {result.dtype.name}\n".encode())
        self._hash.update(np.ascontiguousarray(result).data.cast("B"))
        self._lines.write(f"{number},{result.size},{result.dtype.name},{start_ns},{end_ns}\n")
        if (self._place(number) / "input.npy").exists():
            np.save(self._place(number) / "result.npy", result)

    def failed(self, number: int) -> None:
        """It has ended without a result, at all ranks."""
        self._hash.update(f"{number} failed\n".encode())

    @property
    def digest(self) -> str:
        """Hexadecimal; of the numbers, shapes, types and results of all reductions so far: equal at
        all ranks that had the same results in the same order."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Write what is not written yet. May be called twice."""
        self._lines.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _place(self, number: int) -> Path:
        return self._folder / f"reduction{number}"
