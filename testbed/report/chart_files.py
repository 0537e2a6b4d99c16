"""Charts as files: their specifications, and pictures of them for papers and slides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agglab.testbed.report import vega
from agglab.testbed.report.specification import Spec, text_of
from p4native.common.whole_files import whole_file


@dataclass(frozen=True)
class Figure:
    """A chart of the report. name: the stem of its file's name. kind: for a chart over time, the
    kind of thing that its metric belongs to. is_declared: whether a section `figure` asks for
    it."""

    name: str
    spec: Spec
    kind: str = ""
    is_declared: bool = False

    @property
    def file(self) -> str:
        return f"{self.name}.vl.json"

    @property
    def text(self) -> str:
        """The content of its file."""
        return text_of(self.spec) + "\n"


def write(folder: Path, charts: Iterable[Figure], formats: Iterable[str]) -> Iterator[Path]:
    """Writes each chart in each format beside its specification, and yields the paths. Raises
    MachineLacks."""
    for chart in charts:
        for form in dict.fromkeys(formats):
            path = folder / f"{chart.name}.{form}"
            with whole_file(path) as part:
                part.write_bytes(vega.converted(chart.spec, form))
            yield path
