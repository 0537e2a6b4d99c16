"""Imports NumPy without its threads for linear algebra."""

from __future__ import annotations

import os

THREADS = "OPENBLAS_NUM_THREADS"


def import_numpy() -> None:
    """Imports NumPy so that it starts no threads for linear algebra, which spin while they wait for
    work: the testbed multiplies no large matrices. Programs that this one starts find the
    environment as it was."""
    if THREADS in os.environ:
        return
    os.environ[THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[THREADS]
