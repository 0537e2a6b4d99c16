"""The system ESA, in which all jobs share the slots of the switches and a job of higher priority
can take slots over (docs/systems/esa.md). hosts/systems/pooling/__init__.py lists its settings."""

from __future__ import annotations

from agglab.hosts.systems.pooling import endpoint

QUANTISES = True
"""Whether a worker also returns, for float32, the integers that were summed."""

__all__ = ["QUANTISES", "endpoint"]
