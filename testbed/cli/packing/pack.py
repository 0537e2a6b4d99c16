"""Packs result folders into one file, with everything that a reviewer needs to read and to repeat a
result."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.base.problems import ScenarioError
from agglab.testbed.cli.arguments import CHART_FORMATS
from agglab.testbed.cli.packing import archive
from agglab.testbed.cli.packing.named_files import CannotPack, OwnFiles, rewritten
from agglab.testbed.judge.fidelity import OF_THE_MACHINE
from agglab.testbed.results.files import read_object
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.provenance import code_sha256, git_facts
from agglab.testbed.results.side_by_side import runs_of
from agglab.testbed.run.result_folder import NOT_FINISHED
from agglab.testbed.schema.document import read_file, written
from p4native.common.whole_files import whole_file

LEFT_OUT = ("pcap", "sums")
"""The folders of a run that are not packed. They are large, and repeating the run creates them
again."""
DRAWN = (".vl.json", ".html", *(f".{form}" for form in CHART_FORMATS))
"""The endings of files that are not packed for single runs of a sweep, because `report`
draws them again."""
PATCH = "changes.patch"
README = """A pack of Agglab: results, and what made them.

    ./agglab repeat {name}

in the folder of an Agglab checkout runs each scenario again and says whether the results agree.
If Agglab was installed by pip, the command is `agglab repeat {name}`. Made with commit {commit}.
pack.json lists all files with their hashes; runs/<n>/scenario.yaml is what was run,
runs/<n>/metrics.json what was measured, runs/<n>/report.html the report.
"""


def pack(folders: Sequence[Path], out: Path, within: float) -> list[str]:
    """Writes the pack `out` and returns remarks for the user, one line each. within: the largest
    relative difference at which the median times of a repeated real run still agree with the packed
    ones.

    Raises NoResults, CannotPack or OSError.
    """
    files: dict[str, bytes] = {}
    runs, notes = [], []
    for number, folder in enumerate(folders):
        place = f"runs/{number}"
        described, own = _run(folder, place, within)
        files |= own
        runs.append(described)
        notes += _notes(folder, described)
    patch = _patch(runs)
    if patch:
        files[PATCH] = patch
    commit = _commit(runs)
    files["README.txt"] = README.format(name=out.name, commit=commit).encode()
    _check(files)
    with whole_file(out) as path, path.open("wb") as file:
        archive.write(file, {"runs": runs, "commit": commit}, files)
    return notes


def _check(files: Mapping[str, bytes]) -> None:
    """Raises CannotPack for files that `agglab repeat` would refuse."""
    for name, content in files.items():
        if len(name) > archive.NAME_MAX or not archive.NAME.fullmatch(name):
            raise CannotPack(f"{name}: a pack cannot hold a file of this name")
        if len(content) > archive.FILE_MAX:
            raise CannotPack(f"{name}: is larger than {archive.FILE_MAX} bytes")
    total = sum(map(len, files.values()))
    if total > archive.TOTAL_MAX or len(files) > archive.FILES_MAX:
        raise CannotPack(
            f"{total} bytes in {len(files)} files are too many for one pack: pack fewer runs"
        )


def _run(folder: Path, place: str, within: float) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Returns what pack.json says about a run, and the run's files by their names in the pack."""
    manifest = read_object(folder / "manifest.json")
    if read_object(folder / "metrics.json") == NOT_FINISHED:
        raise CannotPack(f"{folder}: the run did not finish, so there is nothing to repeat")
    try:
        root = read_file(folder / "scenario.yaml")
    except ScenarioError as error:
        raise CannotPack(str(error).splitlines()[0]) from None
    own = OwnFiles()
    scenario = written(rewritten(root, own.named))
    files = {f"{place}/{name}": content for name, content in _files(folder)}
    files |= {f"{place}/{name}": content for name, content in own.files.items()}
    files[f"{place}/scenario.yaml"] = scenario.encode()
    described = {
        "folder": place,
        "scenario": str(manifest.get("scenario", folder.name)),
        "run": f"{folder.resolve().parent.name}/{folder.resolve().name}",
        "git": manifest.get("git"),
        "code_sha256": manifest.get("code_sha256"),
        "within": within,
    }
    return described, files


def is_virtual(metrics: Mapping[str, Any]) -> bool:
    """Returns whether all runs of a result were in virtual time, where every repetition gives the
    same result. A run is known to be virtual if its metrics say that every frame is accounted for.
    An aborted run has no such metrics and counts as real."""
    balanced = [lookup(run.metrics, "accounts.balanced") for run in runs_of(metrics)]
    return bool(balanced) and None not in balanced


def _files(folder: Path) -> list[tuple[str, bytes]]:
    found = []
    for path in sorted(folder.resolve().rglob("*")):
        inside = path.relative_to(folder.resolve())
        drawn = path.name.endswith(DRAWN) and len(inside.parts) > 1
        if path.is_symlink() or not path.is_file() or drawn or set(inside.parts) & set(LEFT_OUT):
            continue
        found.append((str(inside), path.read_bytes()))
    return found


def _commit(runs: Sequence[Mapping[str, Any]]) -> str:
    commits = [str((run["git"] or {}).get("commit", "unknown")) for run in runs]
    return ", ".join(dict.fromkeys(commits))


def _patch(runs: Sequence[Mapping[str, Any]]) -> bytes:
    """Returns the uncommitted changes to the source with which the runs were made, as a patch, if
    they are still known; otherwise an empty text."""
    here = code_sha256()
    modified = [r for r in runs if (r["git"] or {}).get("modified") and r["code_sha256"] == here]
    if not modified or (git_facts() or {}).get("commit") != modified[0]["git"].get("commit"):
        return b""
    command = ["git", "-C", str(REPOSITORY), "diff", "--binary", "HEAD"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    return done.stdout if done.returncode == 0 else b""


def _notes(folder: Path, described: Mapping[str, Any]) -> list[str]:
    notes = []
    git = described["git"]
    if not git:
        notes.append(f"{folder}: it is not known which commit produced these results")
    elif git.get("modified"):
        notes.append(f"{folder}: a checkout with uncommitted changes produced these results")
    if (folder / "pcap").is_dir():
        notes.append(f"{folder}: the pack does not include pcap/")
    return notes + [
        f"{folder}: the machine was too slow ({verdict}), so a repetition may take less time"
        for verdict in _slow_verdicts(folder)
    ]


def _slow_verdicts(folder: Path) -> list[str]:
    runs = runs_of(read_object(folder / "metrics.json"))
    verdicts = {lookup(run.metrics, "fidelity.verdict") for run in runs}
    return sorted(verdicts.intersection(OF_THE_MACHINE))
