"""ESA: slots that all jobs share, and that a job of higher priority can take over;
docs/systems/esa.md. Settings: hosts/systems/pooling/__init__.py."""

from __future__ import annotations

from agglab.hosts.systems.pooling import endpoint

QUANTISES = True
"""Whether a worker also returns, for float32, the integers that were summed."""

__all__ = ["QUANTISES", "endpoint"]
