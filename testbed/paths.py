"""Locates Agglab's files: in a checkout they are beside the packages, and after installation from a
wheel in share/agglab."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
"""The folder that holds the packages. This is the checkout, or site-packages/agglab."""
PROGRAM = "p4/forwarding.p4"


def _shared() -> Path:
    """Returns the folder that has p4/, scenarios/ and figures/."""
    for folder in (REPOSITORY, REPOSITORY.parent / "share/agglab"):  # pip install --target
        if (folder / PROGRAM).is_file():
            return folder
    for file in metadata.files("agglab") or ():
        if file.as_posix().endswith(f"share/agglab/{PROGRAM}"):
            return Path(str(file.locate())).resolve().parents[1]
    return REPOSITORY


SHARED = _shared()
P4_FOLDER = SHARED / "p4"
SCENARIO_FOLDER = SHARED / "scenarios"
FIGURE_FOLDER = SHARED / "figures"
IS_CHECKOUT = SHARED == REPOSITORY
PYTHON = ".venv/bin/python" if IS_CHECKOUT else "python"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
INSTALL_TORCH = f"{PYTHON} -m pip install torch --index-url {CPU_INDEX} (200 MB, without CUDA)"
SETUP = "run `make setup`" if IS_CHECKOUT else ""
"""The command that installs everything; empty without a checkout."""
PYTHON_PACKAGES = {
    "mininet": (
        "apt-get install mininet --no-install-recommends, and use a virtual environment "
        "made with --system-site-packages"
    ),
    "grpc": "python -m pip install grpcio",
    "google": "python -m pip install protobuf",
    "p4": "python -m pip install p4runtime",
    "yaml": "python -m pip install PyYAML",
}


def program_remedy(command: str) -> str:
    """Returns the remedy for a missing program. command: a command that installs only this program.
    The remedy also mentions `make setup`, which installs everything."""
    return f"{SETUP}, or {command}" if SETUP else command


def peer_remedy(package: str, name: str) -> str:
    """Returns the remedy for a program that p4lang publishes as a Debian package."""
    source = f"{package} of p4lang's packages"
    if IS_CHECKOUT:
        return f"run `./setup.sh --peers`, which installs {name} ({source})"
    return f"apt-get install {package} ({source})"


def module_remedy(module: str) -> str:
    """Returns the remedy for a Python module that cannot be imported."""
    package = module.partition(".")[0]
    return SETUP or PYTHON_PACKAGES.get(package, f"python -m pip install {package}")
