"""What the UDP driver says about a small MTU, in a network namespace of its own."""

import subprocess
import sys

import pytest

SCRIPT = """
import subprocess
from agglab.hosts import AllReduceError, AllReducer
subprocess.run(["ip", "link", "set", "lo", "mtu", "1500", "up"], check=True)
import numpy as np
for lanes in (365, 366):
    try:
        one = AllReducer(1, 0, 1, lanes, 1, ("127.0.0.1", 0), ("127.0.0.2", 9), give_up_s=0.01)
        print("made", flush=True)
        one.all_reduce(np.zeros(10, np.int32))
    except AllReduceError as error:
        print(error)
"""


@pytest.mark.root
def test_one_lane_too_many_for_the_mtu_is_one_clear_line():
    command = ["unshare", "--net", sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    made, fits, too_long = done.stdout.splitlines()
    assert made == "made"
    assert fits.startswith("no result for chunk 0 (slot 0) of job 1 after 0.01 s")
    assert too_long == (
        "datagrams of 1476 bytes (1504 of IPv4) exceed the MTU of 127.0.0.1's interface: "
        "use fewer lanes or raise the MTU"
    )
