"""Slots that all jobs share, and that a higher priority takes over: docs/systems/esa.md. Settings:
hosts/systems/pooling/__init__.py."""

from __future__ import annotations

from agglab.hosts.systems.pooling import endpoint

QUANTISES = True
"""For float32 it also returns the integers that travelled."""

__all__ = ["QUANTISES", "endpoint"]
