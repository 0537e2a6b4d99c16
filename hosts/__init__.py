"""Worker agents: all-reduce of NumPy arrays through an aggregating switch.

The public names are here; see docs/hosts.md. This folder imports NumPy and itself only.
"""

from agglab.hosts.all_reduce import AllReducer
from agglab.hosts.errors import AllReduceError, NotFinite, RoundTimeout, ShapeMismatch

__all__ = ["AllReduceError", "AllReducer", "NotFinite", "RoundTimeout", "ShapeMismatch"]
