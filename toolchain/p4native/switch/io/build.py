"""Compiles the packet loop's C, once on each machine: common/c_build.py keeps the result."""

from __future__ import annotations

from pathlib import Path

from p4native.common import c_build
from p4native.switch.build import PART, RUNTIME
from p4native.switch.errors import PipelineError

HERE = Path(__file__).resolve().parent
FLAGS = ("-D_GNU_SOURCE", "-pthread")


def loop_library() -> Path:
    """Returns the packet loop's shared object. Raises PipelineError if there is no compiler or it
    reports an error."""
    try:
        return c_build.build_library(PART, sorted(HERE.glob("*.c")), [HERE, RUNTIME], FLAGS)
    except c_build.BuildError as error:
        raise PipelineError(str(error)) from None
