"""Runs a user's training script: `python -m agglab.hosts.script_run OUTCOME SCRIPT ARGUMENT...`.

The script gets the same arguments and import path as from `python SCRIPT ARGUMENT...`. This program
writes to the file OUTCOME, as JSON, how the script ended. The exit status alone does not show this,
because libraries may abort a process that has done all its work. The process ends when the agent
that started it ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from agglab.hosts.training.autoload import register_where_needed

PR_SET_PDEATHSIG = 1
NICENESS = 5
"""The niceness that is added to that of the agents and switches, whose packets must not wait."""


def end_with(parent: int) -> None:
    """Asks the kernel to kill this process when its parent has ended. parent: the process id of the
    parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)


def outcome_of(script: str) -> dict[str, Any]:
    """Runs the script to its end. Returns `error`: one line that says why the script failed, or an
    empty text if it did not."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as exit_:
        if exit_.code in (None, 0):
            return {"error": ""}
        return {"error": f"it called sys.exit({exit_.code!r})"}
    except BaseException as error:  # whatever a user's script raises
        traceback.print_exc()
        words = " ".join(str(error).split())
        return {"error": f"{type(error).__name__}: {words}" if words else type(error).__name__}
    return {"error": ""}


def main(arguments: list[str]) -> int:
    """Runs the script and returns the exit code: 0, or 1 if the script has failed."""
    end_with(int(os.environ.pop("AGGLAB_AGENT")))
    os.nice(NICENESS)
    outcome, script, *own = arguments
    sys.argv = [script, *own]
    sys.path[0] = str(Path(script).parent)
    register_where_needed()
    found = outcome_of(script)
    sys.stdout.flush()
    part = Path(f"{outcome}.part")
    part.write_text(json.dumps(found))
    part.replace(outcome)
    return 1 if found["error"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
