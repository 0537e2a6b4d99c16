"""A copy of the repository in which one fault at a time is applied, and commands that run in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agglab.verification.mutants.catalogue import CatalogueError, Mutant


class NoRepository(Exception):
    """Raised if a folder has no repository that can be copied. The message is one line that says
    why."""


class Stopped(Exception):
    """Raised in a workspace after `stop` was called. Results of commands that ran in it have no
    meaning."""


IMPORTED = ("src", "toolchain")
"""The folders from which Python imports the packages."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended. code: its exit code, or None if the time limit ended it. output:
    stdout and stderr, in the order in which they came."""

    code: int | None
    output: str


def tracked(repository: Path) -> list[str]:
    """Returns the paths of all files that git tracks, or would track if they were added. The
    repository may belong to another user. Raises NoRepository."""
    command = ["git", "-c", f"safe.directory={repository}", "-C", str(repository), "ls-files", "-z"]
    options = ["--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run([*command, *options], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NoRepository("git is missing: apt-get install git") from error
    if done.returncode:
        raise NoRepository(f"{repository} is not a git repository: {done.stderr.strip()}")
    return [name for name in done.stdout.split("\0") if name and _is_there(repository / name)]


def _is_there(path: Path) -> bool:
    """Returns whether a tracked file, or a link to a folder, is in the repository."""
    return path.is_file() or path.is_symlink()


class Workspace:
    """A copy of the repository. folder: the folder of the copy, which is made here. cache: the
    folder of compiled files, which are identified by their contents."""

    def __init__(self, repository: Path, folder: Path, cache: Path) -> None:
        self.folder = folder
        self._temporary = folder.with_name(f"{folder.name}t")
        self._temporary.mkdir(parents=True)
        self._cache = cache
        self._written_s = int(time.time())
        self._lock = threading.Lock()
        self._stopped = False
        self._running: subprocess.Popen[str] | None = None
        for file in tracked(repository):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / file, folder / file, follow_symlinks=False)

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Applies the fault within the block and restores the file afterwards. Raises
        CatalogueError."""
        path = self.folder / mutant.file
        if not path.is_file():
            raise CatalogueError(f"{mutant.id}: there is no {mutant.file}")
        original = path.read_text(encoding="utf-8")
        self._write(path, mutant.apply(original))
        try:
            yield
        finally:
            self._write(path, original)

    def _write(self, path: Path, text: str) -> None:
        """Writes a source file with a new modification time. Python would otherwise use an old
        compiled module if the source's size and its time, in whole seconds, were the same."""
        path.write_text(text, encoding="utf-8")
        self._written_s += 2
        os.utime(path, (self._written_s, self._written_s))

    def python(self, words: Sequence[str], limit_s: float) -> Ended:
        """Runs the current Python interpreter in the copy. All processes that it started end with
        it. Raises Stopped."""
        with self._begun(words) as process:
            try:
                output, _ = process.communicate(timeout=limit_s)
                return Ended(process.returncode, output)
            except subprocess.TimeoutExpired:
                _end(process)
                output, _ = process.communicate()
                return Ended(None, output)

    def stop(self) -> None:
        """Ends the command that runs here. Any thread may call this. Afterwards, `python` raises
        Stopped."""
        with self._lock:
            self._stopped = True
            if self._running:
                _end(self._running)

    @contextmanager
    def _begun(self, words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        """Starts a Python process for the duration of the block, and ends it after the block."""
        with self._lock:
            if self._stopped:
                raise Stopped
            process = self._running = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with self._lock:
                self._running = None
                stopped = self._stopped
            _end(process)
            process.wait()
            if stopped:
                raise Stopped

    def _environment(self) -> Mapping[str, str]:
        """Returns the environment of commands. In it, the copy's modules come before the installed
        ones, also in processes that tests start."""
        own = {
            "PYTHONPATH": os.pathsep.join(str(self.folder / part) for part in IMPORTED),
            "P4NATIVE_CACHE": str(self._cache),
            "TMPDIR": str(self._temporary),
        }
        kept = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
        return kept | own


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
