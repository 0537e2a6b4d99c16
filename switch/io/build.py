"""Compiles the packet loop's C, once per machine (build.py keeps it)."""

from __future__ import annotations

import os
from pathlib import Path

from agglab.switch.build import NATIVE, build_files, sources_digest

HERE = Path(__file__).resolve().parent
FLAGS = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O3", NATIVE),
    *("-fPIC", "-shared", "-pthread"),
)
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Added when AGGLAB_SANITIZE is 1; the process then needs libasan preloaded."""


def loop_library() -> Path:
    """The packet loop's shared object. Raises PipelineError: no compiler, or it refused."""
    flags = FLAGS + (SANITIZED if os.environ.get("AGGLAB_SANITIZE") == "1" else ())
    seam = HERE.parent / "runtime" / "pipeline.h"
    content = sources_digest([*HERE.glob("*.[ch]"), seam])
    return build_files(sorted(HERE.glob("*.c")), flags, ".so", content)
