"""Loads modules that are named by a user: by their dotted names, or by the paths of their files."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_module(name: str) -> ModuleType:
    """Returns the module with this name, or the module in the file of this name if it ends in .py.

    A file in a folder with an `__init__.py` is a module of that package: it is imported under the
    package's name, as its other modules import it. Other modules may lie beside a file or a
    package. Raises the exceptions of loading the module, and ImportError if another package has the
    name.
    """
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name).resolve()
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    if str(root) not in sys.path:
        sys.path.append(str(root))
    dotted = ".".join(path.relative_to(root).with_suffix("").parts)
    return _alone(path) if root == path.parent else _in_package(path, dotted)


def _alone(path: Path) -> ModuleType:
    """Returns the module of a file, which is executed again each time."""
    name = f"agglab_file_{path.stem}"
    loading = importlib.util.spec_from_file_location(name, path)
    assert loading is not None and loading.loader is not None
    module = importlib.util.module_from_spec(loading)
    sys.modules[name] = module  # where dataclasses look their annotations up
    loading.loader.exec_module(module)
    return module


def _in_package(path: Path, dotted: str) -> ModuleType:
    module = importlib.import_module(dotted)
    if Path(module.__file__ or "").resolve() != path:
        raise ImportError(
            f"{path}: {dotted} is {module.__file__} already; give the folder another name"
        )
    return module
