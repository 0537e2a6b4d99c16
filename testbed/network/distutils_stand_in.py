"""Import before Mininet 2.3.0: it imports distutils, which left Python in 3.12.

Mininet wants only StrictVersion, to compare versions of Open vSwitch, which we do not use.
"""

from __future__ import annotations

import importlib.util
import sys
import types


def provide() -> None:
    """Put an empty distutils into sys.modules if this Python has none. Safe to repeat."""
    if "distutils" not in sys.modules and importlib.util.find_spec("distutils") is None:
        version = types.ModuleType("distutils.version")
        version.StrictVersion = str  # type: ignore[attr-defined]
        sys.modules["distutils"] = types.ModuleType("distutils")
        sys.modules["distutils.version"] = version


provide()
