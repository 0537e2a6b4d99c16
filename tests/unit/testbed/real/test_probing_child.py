"""The forked child that tries what a run on real links needs."""

from __future__ import annotations

import subprocess
import sys

INTERRUPTED_AT_THE_FORK = """
import os, signal
from agglab.testbed.real import machine
machine._kernel_lacks = lambda needs: []
signal.signal(signal.SIGTERM, signal.default_int_handler)
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGTERM))
try:
    machine._probed_in_child(None)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_that_comes_during_the_fork_is_not_lost() -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT_THE_FORK]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
