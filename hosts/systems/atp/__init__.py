"""Slots that all jobs share: docs/pooling.md. Settings: hosts/systems/pooling/__init__.py."""

from __future__ import annotations

from agglab.hosts.systems.pooling import endpoint

QUANTISES = True
"""For float32 it also returns the integers that travelled."""

__all__ = ["QUANTISES", "endpoint"]
