"""The packages of a wheel: every folder of code, as agglab.<folder>. See pyproject.toml."""

from collections.abc import Iterator
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
FOLDERS = ("common", "compiler", "hosts", "switch", "testbed", "topologies", "verification")


def packages() -> Iterator[str]:
    """Folders that hold files, code or what code reads."""
    for folder in FOLDERS:
        for path in (ROOT / folder, *(ROOT / folder).rglob("*")):
            holds = path.name != "__pycache__" and path.is_dir()
            if holds and any(child.is_file() for child in path.iterdir()):
                yield ".".join(("agglab", *path.relative_to(ROOT).parts))


setup(packages=sorted(packages()))
