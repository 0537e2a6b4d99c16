"""A newcomer: a fresh clone of the working tree that is set up, and a user who runs commands in it.

The clone's .venv lends the packages of this checkout's environment instead of downloading them, but
its Agglab is the clone's own. In the long mode, the clone runs ./setup.sh, as a reader does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import needs
from pages import ROOT, TOOLCHAIN
from reviewed import SWEEP
from trials import ROOT_USER

NOBODY = 65534
PATHS = {
    ROOT_USER: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "nobody": "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games",
}
"""What Debian's login gives to each user."""
IS_LONG = os.environ.get("AGGLAB_DOCUMENTS") == "long"
LIMIT_S = 7200 if IS_LONG else 400
SMALL = "--set backend=virtual --set workload.elements=9000"
PREPARING = (
    f"./agglab run quickstart {SMALL}",
    f"./agglab run quickstart {SMALL}",
    f"./agglab run quickstart {SMALL} --set name=baselines",
    "./agglab run sweep.yaml",
    "./p4native-c prog.p4 -o prog.json",
)


@dataclass(frozen=True)
class Newcomer:
    """A user (`root` or `nobody`) with a clone and a home of their own."""

    user: str
    clone: Path
    home: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Runs a line of shell in the clone, in a network namespace of its own."""
        user, group = (0, 0) if self.user == ROOT_USER else (NOBODY, NOBODY)
        become = f"setpriv --reuid {user} --regid {group} --clear-groups"
        shell = f'ip link set lo up; exec {become} env PATH={PATHS[self.user]} sh -c "$0"'
        return subprocess.run(
            ["unshare", "--net", "sh", "-c", shell, line],
            cwd=self.clone,
            env={**self._results(), "HOME": str(self.home), "TMPDIR": str(self.home)}
            | {"PATH": PATHS[ROOT_USER], "BROWSER": "true", "LC_ALL": "C.UTF-8", "COLUMNS": "9999"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def prepare(self) -> None:
        """Makes the files that the documents' commands name: the documents show most of them."""
        program = _block(TOOLCHAIN / "README.md", "p4\n")
        script = _block(TOOLCHAIN / "docs/stf.md", "\n(?=# destination)")
        scenario = _block(ROOT / "README.md", "yaml\n")
        files = {"rack-loss.yaml": scenario, "sweep.yaml": SWEEP}
        files |= dict.fromkeys(("prog.p4", "reflect.p4", "program.p4"), program)
        files |= dict.fromkeys(("reflect.stf", "test.stf"), script)
        for name, text in files.items():
            (self.clone / name).write_text(text)
        for line in PREPARING:
            succeeded(self.run(line))
        succeeded(self.run("./agglab pack $A --out pack.agglab.zip"))

    def _results(self) -> dict[str, str]:
        runs = sorted(self.clone.glob("results/quickstart/2*"))[:2]
        sweeps = sorted(self.clone.glob("results/sweep/2*"))[:1]
        names = dict(zip(("A", "B", "SWEEP"), [*runs, *sweeps], strict=False))
        places = {name: str(path.relative_to(self.clone)) for name, path in names.items()}
        return {**places, "PACK": "pack.agglab.zip"}


@contextmanager
def arrived(user: str) -> Iterator[Newcomer]:
    """Yields a user with a clone that is set up."""
    needs.require("make", "mn", "openssl", "setpriv")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place, home = Path(folder) / "agglab", Path(folder) / "home"
        place.mkdir()
        home.mkdir()
        clone(place)
        give_to(Path(folder), user)
        reader = Newcomer(user, place, home)
        if reader.run(".venv/bin/python -c 'import numpy'").returncode != 0:
            reader_may = f"a checkout that the user {user} may read"
            needs.skip_lacking(reader_may, "move it out of private folders")
        yield reader


def _block(page: Path, start: str) -> str:
    """The one code block of a page that has this start; `start` is a regular expression."""
    (text,) = re.findall(rf"^```{start}(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return str(text)


def succeeded(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, f"{done.args[-1]}\n{done.stdout}{done.stderr}"


def clone(folder: Path) -> None:
    """Puts the working tree's files that git knows or does not ignore into the folder, and sets the
    clone up."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (source := ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name, follow_symlinks=False)
    if IS_LONG:
        subprocess.run(["./setup.sh"], cwd=folder, check=True, timeout=LIMIT_S)
    else:
        _lend_environment(folder)


def _lend_environment(folder: Path) -> None:
    """Makes a .venv that links to the packages of this checkout's, except for Agglab itself, whose
    files and scripts name the clone instead."""
    ours, theirs = ROOT / ".venv", folder / ".venv"
    (site,) = ours.glob("lib/python3*/site-packages")
    packages = theirs / site.relative_to(ours)
    packages.mkdir(parents=True)
    (theirs / "bin").mkdir()
    for source, target in ((site, packages), (ours / "bin", theirs / "bin"), (ours, theirs)):
        for each in source.iterdir():
            if source != ours or each.is_file():
                _lend(each, target / each.name, folder)


def _lend(source: Path, target: Path, folder: Path) -> None:
    if source.is_symlink():
        target.symlink_to(os.readlink(source))
    elif source.is_dir():
        target.symlink_to(source)
    elif str(ROOT).encode() in (content := source.read_bytes()):
        target.write_bytes(content.replace(str(ROOT).encode(), str(folder).encode()))
        target.chmod(source.stat().st_mode)
    elif source.is_file():
        shutil.copy2(source, target)


def give_to(folder: Path, user: str) -> None:
    """Makes the user the owner of everything in the folder."""
    if user != ROOT_USER:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
