"""The process of a user's training script, which runs beside the agent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from agglab.hosts.part import Part
from agglab.hosts.training.environment import script_environment

STORE_PORT = 29500
"""The port of the first rank's store under torchrun. Each job uses the sum of this and its
number."""
SIOCGIFADDR = 0x8915


class Script:
    """A running training script. environment: variables that are added to those of the agent.
    folder: an empty folder in which the script's outcome is written. The script's output goes to
    the same place as the agent's output."""

    def __init__(
        self,
        script: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
    ) -> None:
        self.name = Path(script).name
        self._outcome = folder / "outcome.json"
        command = [sys.executable, "-m", "agglab.hosts.script_run", str(self._outcome), script]
        told = {**os.environ, **environment, "AGGLAB_AGENT": str(os.getpid())}
        self._process = subprocess.Popen(
            [*command, *arguments], stdin=subprocess.DEVNULL, env=told, start_new_session=True
        )
        self._pidfd = os.pidfd_open(self._process.pid)

    def fileno(self) -> int:
        """Returns a file descriptor that becomes readable when the script has ended."""
        return self._pidfd

    @property
    def ended(self) -> bool:
        return self._status() is not None

    def wait(self, timeout_s: float) -> bool:
        """Waits for at most `timeout_s` seconds until the script has ended. Returns whether it has
        ended."""
        select.select([self._pidfd], [], [], timeout_s)
        return self.ended

    def _status(self) -> int | None:
        """Returns the exit status, the negative number of the signal that ended the script, or None
        while the script runs. An ended process stays a zombie, so that no other process group can
        get its number before `kill` is called."""
        how = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if how is None:
            return None
        return how.si_status if how.si_code == os.CLD_EXITED else -how.si_status

    def error(self) -> str:
        """Returns in one line why a script that has ended failed, or an empty text if it did not
        fail. A process that ends by `os._exit` leaves only its exit status."""
        status = self._status()
        assert status is not None, "it has ended"
        try:
            told = json.loads(self._outcome.read_text())["error"]
        except (OSError, ValueError, KeyError):
            if status == 0:
                return ""
            how = f"was killed by {_signal(-status)}" if status < 0 else f"ended with {status}"
            return f"{self.name} {how}"
        return f"{self.name}: {told}" if told else ""

    def kill(self) -> None:
        """Ends the script and all processes in its process group. May be called twice."""
        if self._pidfd < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._pidfd)
        self._pidfd = -1


def environment(part: Part, run: str, agent: str) -> dict[str, str]:
    """Returns the environment variables that the script gets in addition to those of the agent.
    run: a name of the training run, the same at all ranks. agent: the path of the agent's Unix
    socket."""
    master = (part.hosts[0], STORE_PORT + part.job)
    return {
        **script_environment(part.rank, part.workers, master, run, agent),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "GLOO_SOCKET_IFNAME": interface_of(part.bind[0]),  # what Gloo listens at, of its own accord
        "PYTHONUNBUFFERED": "1",
    }


def interface_of(address: str) -> str:
    """Returns the name of the network interface that has an IPv4 address. Returns `lo` if no
    interface reports the address, because `lo` has many addresses and reports only one of them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode())
            try:
                answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)
            except OSError:
                continue  # it has no address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return "lo"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
