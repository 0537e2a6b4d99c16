"""Provides an empty distutils for Mininet 2.3.0, which imports it; Python has had none since 3.12.
This module must be imported before Mininet.

Mininet needs only StrictVersion, to compare versions of Open vSwitch, which Agglab does not use.
"""

from __future__ import annotations

import importlib.util
import sys
import types


def provide() -> None:
    """Puts an empty distutils into sys.modules if this Python has none. It can be called several
    times."""
    if "distutils" not in sys.modules and importlib.util.find_spec("distutils") is None:
        version = types.ModuleType("distutils.version")
        version.StrictVersion = str  # type: ignore[attr-defined]
        sys.modules["distutils"] = types.ModuleType("distutils")
        sys.modules["distutils.version"] = version


provide()
