"""The packages and the data of a wheel: every folder of code as agglab.<folder>, and what its
commands read as share/agglab/<folder>. In a checkout the latter lie beside the packages
(testbed/base/paths.py). See pyproject.toml."""

from collections.abc import Iterator
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
SOURCE = "src/agglab"
FOLDERS = sorted(path.name for path in (ROOT / SOURCE).iterdir() if path.is_dir())
DATA = ("p4", "scenarios", "figures", "labs")


def folders(name: str) -> Iterator[tuple[Path, list[str]]]:
    """A folder and all below it that hold files, and those files, with paths from ROOT. Tests that
    lie beside the code are left out."""
    for path in (ROOT / name, *(ROOT / name).rglob("*")):
        if path.is_dir() and not {"__pycache__", "tests"} & {*path.relative_to(ROOT).parts}:
            files = [str(child.relative_to(ROOT)) for child in path.iterdir() if child.is_file()]
            if files:
                yield path.relative_to(ROOT), sorted(files)


setup(
    packages=[
        "agglab",
        *sorted(
            ".".join(path.relative_to("src").parts)
            for name in FOLDERS
            for path, _ in folders(f"{SOURCE}/{name}")
        ),
    ],
    data_files=[(f"share/agglab/{path}", files) for name in DATA for path, files in folders(name)],
)
