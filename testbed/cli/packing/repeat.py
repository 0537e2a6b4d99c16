"""Repeats the runs of a pack and compares the results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from agglab.testbed.base.exit_codes import FAILED, PASSED, together
from agglab.testbed.cli.packing import archive
from agglab.testbed.cli.packing.agreement import real_differences, virtual_differences
from agglab.testbed.cli.packing.archive import LISTING, BadPack
from agglab.testbed.cli.packing.named_files import code_in, strays
from agglab.testbed.cli.packing.pack import is_virtual
from agglab.testbed.results.files import read_object
from agglab.testbed.results.provenance import code_sha256
from agglab.testbed.scenario import load
from agglab.testbed.schema.document import read_file

Run = Callable[..., int]
SHOWN = 10
RUNS_MAX = 1000


@dataclass(frozen=True)
class Packed:
    """One run of a pack that was extracted. folder: where its files are. within: the tolerance for
    times (see `pack`)."""

    folder: Path
    name: str
    within: float
    code_sha256: str
    commit: str


def repeat(pack: Path, results: Path, trusted: bool, run: Run, out: TextIO) -> int:
    """Repeats every run into `results` and reports the outcome. run: the function
    `agglab.testbed.experiment.scenario_run.run`. Returns PASSED if all runs agree, FAILED if one
    does not, UNDECIDED if one could not be judged, or the exit code of a run that was aborted.

    Raises BadPack, NoResults, and the exceptions of `load` and `run`.
    """
    with tempfile.TemporaryDirectory(prefix="agglab-pack-") as scratch:
        listing = archive.extract(pack, Path(scratch))
        every = [_packed(described, Path(scratch)) for described in _runs(listing)]
        for packed in every:
            _check(packed, trusted)
        codes = [_repeat(packed, results, run, out) for packed in every]
    return together(codes)


def _runs(listing: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    runs = listing.get("runs")
    if not isinstance(runs, list) or not 0 < len(runs) <= RUNS_MAX:
        raise BadPack(f"{LISTING} has no list of runs")
    if not all(isinstance(described, dict) for described in runs):
        raise BadPack(f"{LISTING}: the description of a run is malformed")
    return runs


def _packed(described: Mapping[str, Any], scratch: Path) -> Packed:
    place, within = described.get("folder"), described.get("within")
    if not isinstance(place, str) or not archive.NAME.fullmatch(place):
        raise BadPack(f"{LISTING}: a run has no folder")
    if isinstance(within, bool) or not isinstance(within, (int, float)) or not 0 <= within <= 1:
        raise BadPack(f"{LISTING}: {place} does not say how much times may differ")
    folder = scratch / place
    for name in ("scenario.yaml", "metrics.json"):
        if not (folder / name).is_file():
            raise BadPack(f"{place} has no {name}")
    git = described.get("git")
    return Packed(
        folder,
        str(described.get("run", place)),
        float(within),
        str(described.get("code_sha256")),
        str(git.get("commit")) if isinstance(git, dict) else "unknown",
    )


def _check(packed: Packed, trusted: bool) -> None:
    """Checks a run before it is loaded, because loading a scenario imports the code that it names.
    Raises BadPack."""
    root = read_file(packed.folder / "scenario.yaml")
    if found := strays(root):
        raise BadPack(f"{packed.name}: its scenario names {found[0]!r}, which is not in the pack")
    if (code := code_in(root)) and not trusted:
        raise BadPack(
            f"{packed.name}: the scenario runs Python code from the pack's author "
            f"({', '.join(code)}): read that code, then give --trust-code to run it"
        )


def _repeat(packed: Packed, results: Path, run: Run, out: TextIO) -> int:
    print(f"repeating {packed.name}", file=out, flush=True)
    if packed.code_sha256 != code_sha256():
        print(
            f"  this code is not the one that produced the results: git checkout {packed.commit}",
            file=out,
        )
    suite = load(packed.folder / "scenario.yaml")
    code = run(suite, results, [], out)
    if code not in (PASSED, FAILED):
        return code
    again = (results / suite.name / "latest").resolve()
    if is_virtual(read_object(again / "metrics.json")):
        differences = list(virtual_differences(packed.folder, again))
        how = "byte for byte"
    else:
        differences = list(real_differences(packed.folder, again, packed.within))
        how = f"verdicts, and times within {packed.within:.0%}"
    if not differences:
        print(f"AGREES  {packed.name} ({how})", file=out)
        return PASSED
    print(f"DOES NOT AGREE  {packed.name} ({how})", file=out)
    for text in differences[:SHOWN]:
        print(f"  {text}", file=out)
    if len(differences) > SHOWN:
        print(f"  and {len(differences) - SHOWN} more", file=out)
    return FAILED
