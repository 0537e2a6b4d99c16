"""The environment variables of a training script. This module imports nothing of `hosts`."""

from __future__ import annotations

BACKEND = "agglab"
"""The backend's name in PyTorch."""
SOCKET = "AGGLAB_TRAINING"
"""The variable that names the Unix socket at which the agent of the host waits for the script."""
NO_NAMES = "timeout:1 attempts:1"
"""Options of resolv.conf(5) that keep name look-ups short. PyTorch looks up the names of addresses,
but the hosts here have no name server."""


def script_environment(
    rank: int, workers: int, master: tuple[str, int], run: str, socket_path: str
) -> dict[str, str]:
    """Returns the environment variables that `torchrun` gives to a script with one process on each
    host, and the variable with the path of the agent's socket. master: the address of rank 0's host
    and a free port there, for PyTorch's store. run: any name, the same at all ranks."""
    host, port = master
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(workers),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "GROUP_RANK": str(rank),
        "GROUP_WORLD_SIZE": str(workers),
        "ROLE_NAME": "default",
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(workers),
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": run,
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "RES_OPTIONS": NO_NAMES,
        SOCKET: socket_path,
    }
