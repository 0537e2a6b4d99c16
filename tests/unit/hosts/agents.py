"""Agents as processes around one loopback switch, and the ends of their control sockets."""

import json
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from loopback import LoopbackSwitch
from switch_model import JobEntry

ROOT = Path(__file__).parents[3]
LANES, SLOTS, ELEMENTS = 32, 16, 10_000


def work(elements=ELEMENTS, dtype="float32"):
    """As a configuration has it."""
    return {"kind": "allreduce", "elements": elements, "dtype": dtype}


class Handle:
    """One agent process and the testbed's end of its control socket."""

    def __init__(self, folder, number, switch, **changes):
        path = str(folder / f"control{number}")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        config = {
            "name": f"h{number + 1}",
            "job": 2,
            "rank": number,
            "workers": 2,
            "system": "agglab.systems.switchml.endpoint",
            "role": "worker",
            "settings": {
                "lanes": changes.pop("lanes", LANES),
                "slots": SLOTS,
                "window": changes.pop("window", None),
                "first_tag": 1,
                "aggregator": list(switch.address),
            },
            "bind": [f"127.0.0.{number + 1}", 0],
            "link_rate_bps": 100e6,
            "work": work(),
            "seed": 7,
            "give_up_s": 5,
            "control": path,
            "sums_dir": str(folder),
        }
        file = folder / f"agent{number}.json"
        file.write_text(json.dumps(config | changes))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agglab.hosts.agent", str(file)],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.socket, _ = listener.accept()
        self._lines = self.socket.makefile("rb")
        listener.close()

    def send(self, **command):
        self.socket.sendall(json.dumps(command).encode() + b"\n")

    def event(self):
        """The next event that is not progress."""
        while True:
            line = self._lines.readline()
            assert line, "the agent closed the control socket"
            event = json.loads(line)
            if event["event"] != "progress":
                return event

    def end(self):
        """Exit code and standard error, once it has ended by itself."""
        _, errors = self.process.communicate()
        self.close()
        return self.process.returncode, errors

    def close(self):
        self._lines.close()
        self.socket.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@contextmanager
def agents(folder):
    """Starts agents around one loopback switch; ends what a failing test leaves."""
    handles = []
    with LoopbackSwitch(LANES, {2: JobEntry(2, SLOTS)}) as switch:

        def launch(ranks=(0, 1), **changes):
            handles.extend(Handle(folder, rank, switch, **changes) for rank in ranks)
            return handles

        yield launch
        for handle in handles:
            handle.close()


def arrays(folder, rank, round):
    """What an agent has left of a round, by name."""
    files = (folder / f"job2-rank{rank}-round{round}").glob("*.npy")
    return {path.stem: np.load(path) for path in files}
