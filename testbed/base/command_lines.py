"""Spells the commands that messages and reports tell the user to run, so that they work in the
shell in which Agglab was started: in any folder of a checkout, and where a wheel is installed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from agglab.testbed.base.paths import IS_CHECKOUT, REPOSITORY

MODULES = {
    "agglab": "agglab.testbed",
    "p4native-c": "p4native.compiler",
    "p4native-lsp": "p4native.lsp",
    "p4native-stf": "p4native.stf",
    "p4native-switch": "p4native.switch.simple_switch",
}
"""The Python module of each program that is installed with Agglab."""
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PYTHON_PACKAGES = {
    "mininet": (
        "apt-get install mininet --no-install-recommends, and use a virtual environment "
        "made with --system-site-packages"
    ),
    "grpc": "grpcio",
    "google": "protobuf",
    "p4": "p4runtime",
    "yaml": "PyYAML",
}
"""The package of a Python module that has another name, or what to do if pip has no package."""


def launcher(name: str = "agglab") -> str:
    """Returns how to start one of Agglab's programs: `./agglab` in the folder of a checkout, and
    its path elsewhere; an installed program by its name, if the shell finds it so."""
    if IS_CHECKOUT:
        return _in_checkout(name)
    beside = Path(sys.executable).with_name(name)
    by_name = shutil.which(name)
    if by_name and (not beside.is_file() or os.path.samefile(by_name, beside)):
        return name
    return shlex.quote(str(beside)) if beside.is_file() else module(MODULES[name])


def launcher_on_a_page() -> str:
    """Returns how a page that is read later says to start `agglab`: in a checkout, the page tells
    its reader to be in the checkout's folder."""
    return "./agglab" if IS_CHECKOUT else launcher()


def path_on_a_page(path: Path) -> str:
    """Returns a path as an argument in such a command: relative to the checkout if it is inside,
    and absolute elsewhere."""
    whole = path.resolve()
    inside = IS_CHECKOUT and whole.is_relative_to(REPOSITORY)
    return shlex.quote(str(whole.relative_to(REPOSITORY) if inside else whole))


def path_on_a_shell(path: Path) -> str:
    """Returns a path as a word of a command: relative if it is below the working directory."""
    whole = Path(os.path.abspath(path))
    below = whole.is_relative_to(Path.cwd())
    return shlex.quote(str(whole.relative_to(Path.cwd()) if below else whole))


def python() -> str:
    """Returns how to start the Python interpreter that has Agglab."""
    if IS_CHECKOUT and Path(sys.executable) == REPOSITORY / ".venv/bin/python":
        return _in_checkout(".venv/bin/python").removeprefix("./")
    by_name = shutil.which("python")
    is_ours = by_name is not None and os.path.abspath(by_name) == os.path.abspath(sys.executable)
    return "python" if is_ours else shlex.quote(sys.executable)


def module(name: str) -> str:
    """Returns how to start a Python module, such as `agglab.verification`."""
    return f"{python()} -m {name}"


def setup() -> str:
    """Returns the advice to install everything that Agglab needs; empty without a checkout."""
    if not IS_CHECKOUT:
        return ""
    folder = "" if _is_here() else f"-C {shlex.quote(str(REPOSITORY))} "
    return f"run `make {folder}setup`"


def peers() -> str:
    """Returns the advice to install the programs with which Agglab can be compared; empty without a
    checkout."""
    return f"run `{_in_checkout('setup.sh')} --peers`" if IS_CHECKOUT else ""


def pip_install(package: str) -> str:
    """Returns the command that installs a Python package where Agglab is installed."""
    return f"{python()} -m pip install {package}"


def install_torch() -> str:
    """Returns the command that installs PyTorch without gigabytes of CUDA."""
    return f"{pip_install('torch')} --index-url {CPU_INDEX} (200 MB, without CUDA)"


def extra(name: str) -> str:
    """Returns the command that installs Agglab's optional dependencies of this name."""
    if not IS_CHECKOUT:
        return pip_install(f"'agglab[{name}]'")
    folder = "." if _is_here() else str(REPOSITORY)
    return pip_install(f"--editable {shlex.quote(f'{folder}[{name}]')}")


def program_remedy(command: str) -> str:
    """Returns the remedy for a missing program. command: a command that installs only this program.
    The remedy also mentions `make setup`, which installs everything."""
    return f"{setup()}, or {command}" if IS_CHECKOUT else command


def peer_remedy(package: str, name: str) -> str:
    """Returns the remedy for a program that p4lang publishes as a Debian package."""
    source = f"{package} of p4lang's packages"
    if IS_CHECKOUT:
        return f"{peers()}, which installs {name} ({source})"
    return f"apt-get install {package} ({source})"


def module_remedy(module: str) -> str:
    """Returns the remedy for a Python module that cannot be imported."""
    top = module.partition(".")[0]
    package = PYTHON_PACKAGES.get(top, top)
    return setup() or (package if " " in package else pip_install(package))


def _is_here() -> bool:
    return os.path.samefile(os.curdir, REPOSITORY)


def _in_checkout(path: str) -> str:
    return f"./{path}" if _is_here() else shlex.quote(str(REPOSITORY / path))
