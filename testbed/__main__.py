"""`agglab`: see cli.py, which does not load without PyYAML and NumPy."""

from __future__ import annotations

import sys

from agglab.testbed.exit_codes import INTERRUPTED, LACKING
from agglab.testbed.paths import SETUP, module_remedy


def run() -> int:
    """The exit code of the command line; a Python module that is not installed is named."""
    try:
        from agglab.testbed.cli import main

        return main()
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


if __name__ == "__main__":
    sys.exit(run())
