"""The entry point of `agglab`. It reports a missing Python module in one line; cli.py does the rest
and cannot be imported without PyYAML and NumPy."""

from __future__ import annotations

import os
import sys

from agglab.testbed import garbage
from agglab.testbed.exit_codes import INTERRUPTED, LACKING
from agglab.testbed.paths import SETUP, module_remedy

THREADS = "OPENBLAS_NUM_THREADS"


def run() -> int:
    """Runs the command line and returns its exit code. If a Python module is not installed, the
    message names it."""
    try:
        with garbage.seldom_collected():
            _import_numpy()
            from agglab.testbed.cli import main

            code = main()
        garbage.left_at_exit()
        return code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "agglab":
            raise
        remedy = f"{SETUP}, and use .venv/bin/python" if SETUP else module_remedy(package)
        print(f"this machine lacks the Python module {package}: {remedy}", file=sys.stderr)
        return LACKING
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _import_numpy() -> None:
    """Keeps NumPy from starting threads for linear algebra here, which spin while they wait for
    work: the testbed multiplies no large matrices. Programs that this one starts find the
    environment as it was."""
    if THREADS in os.environ:
        return
    os.environ[THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[THREADS]


if __name__ == "__main__":
    sys.exit(run())
