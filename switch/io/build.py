"""Compiles the packet loop's C, once per machine (common/c_build.py keeps it)."""

from __future__ import annotations

from pathlib import Path

from agglab.common import c_build
from agglab.switch.build import PART, RUNTIME
from agglab.switch.errors import PipelineError

HERE = Path(__file__).resolve().parent
FLAGS = ("-D_GNU_SOURCE", "-pthread")


def loop_library() -> Path:
    """The packet loop's shared object. Raises PipelineError: no compiler, or it refused."""
    try:
        return c_build.build_library(PART, sorted(HERE.glob("*.c")), [HERE, RUNTIME], FLAGS)
    except c_build.BuildError as error:
        raise PipelineError(str(error)) from None
