"""The system ESA, in which all jobs share the slots of the switches and a job of higher priority
can take slots over (README.md). systems/pooling/endpoint.py lists its settings."""

from __future__ import annotations

from agglab.systems.pooling.endpoint import build, endpoint

QUANTISES = True
"""Whether a worker also returns, for float32, the integers that were summed."""

__all__ = ["QUANTISES", "build", "endpoint"]
