"""What some tests need and set-up does not install everywhere, and the command that gets it.

A test that lacks such a thing is skipped with a reason of one form, `needs NAME: COMMAND`. No test
skips by other means, so that tests/skipped.py can count what is missing and run it later.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "toolchain/tests"))  # a plugin imports this module before conftest.py

import need  # noqa: E402
from need import AS_ROOT, PRIVILEGED, Need, has_module, has_program  # noqa: E402

SETUP = "./setup.sh"
TEST_TOOLS = "./setup.sh --test-tools"
PEERS = "./setup.sh --peers"
UNPACKAGED = ROOT / ".venv/agglab-unpackaged"
"""Where setup.sh names the test tools for which the system has no package, one a line."""
ARM64_HEADERS = Path("/usr/aarch64-linux-gnu/include")
NO_PACKAGE = "this system has no package of it"
BROWSERS = ("chromium", "chromium-browser")
REASON = re.compile(r"(?:Skipped: )?needs (?P<name>[^:]+): (?P<remedy>.+)")


def browser() -> str | None:
    """The path of Chromium, under either of its names."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def _has_netem() -> bool:
    from agglab.testbed.real import lacks
    from agglab.topologies import Direction, rack

    return not lacks(rack(1, Direction(delay_us=1000)))


def _has_fsdp2() -> bool:
    numbers = metadata.version("torch").split(".")[:2] if has_module("torch") else ["0"]
    return [int(number) for number in numbers] >= [2, 6]


def _module(name: str, module: str, *words: str) -> Need:
    return Need(name, TEST_TOOLS, lambda: has_module(module), (name, module, *words))


def _program(name: str, remedy: str, *programs: str) -> Need:
    return Need(name, remedy, lambda: has_program(*programs or (name,)), (name, *programs))


ALL = (
    need.ROOT,
    need.NAMESPACES,
    _module("PyTorch", "torch"),
    Need("PyTorch 2.6 or newer", TEST_TOOLS, _has_fsdp2),
    Need(
        "vl-convert-python",
        SETUP,
        lambda: has_module("vl_convert"),
        ("vl-convert-python", "vl_convert"),
    ),
    _module("pyarrow", "pyarrow"),
    _module("Dask", "distributed"),
    _module("scikit-learn", "sklearn"),
    _module("mlxtend", "mlxtend"),
    _program("gnupg", TEST_TOOLS, "gpg"),
    _program("shellcheck", TEST_TOOLS),
    _program("ruby", TEST_TOOLS),
    _program("vagrant", TEST_TOOLS),
    _program("clang", TEST_TOOLS),
    _program("tshark", TEST_TOOLS),
    replace(need.NEOVIM, remedy=TEST_TOOLS),
    Need("chromium", TEST_TOOLS, lambda: browser() is not None),
    _program("gcc-aarch64-linux-gnu", TEST_TOOLS, "aarch64-linux-gnu-gcc"),
    Need("libc6-dev-arm64-cross", TEST_TOOLS, ARM64_HEADERS.is_dir),
    _program("p4c", PEERS, "p4c-bm2-ss"),
    _program("BMv2", PEERS, "simple_switch", "simple_switch_CLI", "simple_switch_grpc"),
    Need("a kernel with netem", "make machine", _has_netem, ("netem",)),
    # Of the packages that set-up installs where there is apt-get.
    _program("make", SETUP),
    _program("mn", SETUP),
    _program("setpriv", SETUP),
    _program("openssl", SETUP),
    Need("mininet", SETUP, lambda: has_module("mininet"), ("mininet",)),
)
NEEDS = {each.name: each for each in ALL}


def missing(*names: str) -> Need | None:
    """The first of these needs that this machine does not meet."""
    return next((NEEDS[name] for name in names if not NEEDS[name].is_met()), None)


def mark(*names: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped if this machine lacks one of these needs."""
    return need.mark(*(NEEDS[name] for name in names))


def require(*names: str) -> None:
    """Skips the running test, or the module that is being imported, if one of these is missing."""
    lack = missing(*names)
    if lack is not None:
        pytest.skip(lack.reason, allow_module_level=True)


def skip_lacking(what: str, remedy: str) -> NoReturn:
    """Skips the test because Agglab, or a test's own look at the machine, says what is lacking.
    Known needs are called by their names."""
    for each in ALL:
        if any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", what) for word in each.words):
            pytest.skip(each.reason)
    pytest.skip(f"needs {what.replace(':', ',')}: {remedy}")


def skip_if_said_lacking(said: str) -> None:
    """Skips the test if a command of Agglab ended because of something that the machine lacks."""
    lack = re.search(r"^this machine lacks (.+?): (.*)$", said, re.MULTILINE)
    if lack:
        skip_lacking(lack[1], lack[2].strip())


def need_and_remedy(reason: str) -> tuple[str, str]:
    """What a skipped test's reason says is needed, and how to get it. A reason of another form is
    returned whole, without a remedy."""
    parsed = REASON.fullmatch(reason)
    if parsed is None:
        return reason.removeprefix("Skipped: "), ""
    is_unpackaged = parsed["name"] in unpackaged()
    return parsed["name"], NO_PACKAGE if is_unpackaged else parsed["remedy"]


def is_still_missing(reason: str) -> bool:
    """Whether a test that was skipped for this reason would be again, as far as one can look."""
    named = NEEDS.get(need_and_remedy(reason)[0])
    return named is not None and not named.is_met()


def is_met_in_ci(reason: str) -> bool:
    """Whether CI has what this skipped test needs: CI is root, may make namespaces, and installs
    the test tools. A reason that names no need is no excuse."""
    remedy = need_and_remedy(reason)[1]
    return remedy in ("", SETUP, TEST_TOOLS, AS_ROOT, PRIVILEGED) or " install " in remedy


def unpackaged() -> Sequence[str]:
    """The test tools for which setup.sh has seen no package."""
    return UNPACKAGED.read_text().split() if UNPACKAGED.is_file() else ()
