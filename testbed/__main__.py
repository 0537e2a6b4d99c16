"""The entry point of `agglab`. It reports a missing Python module in one line; cli.py does the
rest."""

from __future__ import annotations

import sys

from agglab.testbed.base import garbage_collection, system_programs
from agglab.testbed.base.exit_codes import INTERRUPTED, LACKING


def run() -> int:
    """Runs the command line and returns its exit code. If a Python module is not installed, the
    message names it."""
    try:
        system_programs.add_to_path()
        with garbage_collection.seldom_collected():
            from agglab.testbed.cli.main import main

            code = main()
        garbage_collection.left_at_exit()
        return code
    except ModuleNotFoundError as error:
        return _lacks_module(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _lacks_module(error: ModuleNotFoundError) -> int:
    """Says which package of others is missing. A missing module of our own is a bug."""
    from agglab.testbed.base.command_lines import launcher, module_remedy, setup

    package = (error.name or "").partition(".")[0]
    if package == "agglab":
        raise error
    remedy = f"{setup()}, and use {launcher()}" if setup() else module_remedy(package)
    print(f"this machine lacks the Python module {package}: {remedy}", file=sys.stderr)
    return LACKING


if __name__ == "__main__":
    sys.exit(run())
