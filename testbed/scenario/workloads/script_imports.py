"""Finds modules that a training script imports and that this machine does not have. The script is
read, but not run."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from agglab.testbed.base.command_lines import install_torch, pip_install

PACKAGES = {"sklearn": "scikit-learn", "mlxtend": "mlxtend", "PIL": "pillow", "yaml": "PyYAML"}
"""The package that has a module, where the two names differ or the package needs options."""


def lacks(script: Path) -> Iterator[tuple[str, str]]:
    """Yields what is missing of PyTorch and of the modules that the script imports, and how to get
    it."""
    wanted = dict.fromkeys(["torch", *imported(script)])
    for module in wanted:
        if _is_there(module, script.parent):
            continue
        if module == "torch":
            yield "PyTorch, which `workload.kind: torch` needs", install_torch()
        else:
            remedy = pip_install(PACKAGES.get(module, module))
            yield f"the Python module {module}, which {script.name} imports", remedy


def imported(script: Path) -> list[str]:
    """Returns the top-level names of modules that the script imports in statements at its own
    level. Imports within a function or a `try` are left out, because the script may work without
    them. Returns no names for a file that is not Python; running it reports the error."""
    try:
        tree = ast.parse(script.read_bytes(), str(script))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return [name.partition(".")[0] for name in names]


def _is_there(module: str, folder: Path) -> bool:
    beside = (folder / f"{module}.py").is_file() or (folder / module).is_dir()
    return beside or importlib.util.find_spec(module) is not None
