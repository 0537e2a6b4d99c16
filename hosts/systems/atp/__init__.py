"""Slots that all jobs share: docs/pooling.md. Settings: hosts/systems/pooling/__init__.py."""

from __future__ import annotations

from agglab.hosts.systems.pooling import endpoint

QUANTISES = True
"""Of float32 it hands out the integers that travelled, too."""

__all__ = ["QUANTISES", "endpoint"]
