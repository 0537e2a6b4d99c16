"""Compiles C with the machine's C compiler, and caches the results.

The cache is `$P4NATIVE_CACHE`, or `$XDG_CACHE_HOME/p4native`, or `~/.cache/p4native`. The name of a
cached file is a hash of everything on which the file depends: sources, flags, the compiler and the
processor.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from p4native.common.private_folders import why_not_ours

# On ARM64 clang 14 has no -march=native, and gcc's does not tune.
NATIVE = "-mcpu=native" if platform.machine() == "aarch64" else "-march=native"
LIBRARY = ("-std=gnu11", "-O3", NATIVE, "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
SANITIZED = (
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    *("-g", "-fno-omit-frame-pointer"),
)
CPU_INFO = Path("/proc/cpuinfo")
# Of x86-64: flags, model; of ARM64: Features, CPU implementer, part, ...
PROCESSOR = ("flags", "model", "Features", "CPU")
LIMIT_S = 600


class BuildError(RuntimeError):
    """Raised if nothing could be built, because there is no compiler or the cache cannot be used.
    The message is one line."""


class CompileError(BuildError):
    """Raised if the compiler ended with an error."""


def cache_folder() -> Path:
    """Returns the folder of the cache."""
    chosen = os.environ.get("P4NATIVE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "p4native"


def compiler() -> str:
    """Returns the path of the C compiler: `$CC` if it is set, otherwise cc or gcc. Raises
    BuildError if there is none."""
    return _compiler(os.environ.get("CC"))[0]


@lru_cache
def _compiler(wanted: str | None) -> tuple[str, str]:
    """Returns the compiler's path, and a text that changes when another compiler is installed at
    this path. The result is kept in memory, because a switch that has dropped its privileges may
    not be able to see the compiler any more."""
    names = (wanted,) if wanted else ("cc", "gcc")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        missing = f"'{wanted}' is not in PATH; install gcc, or set CC"
        raise BuildError(
            f"no C compiler: {missing if wanted else 'install gcc (apt-get install gcc)'}"
        )
    found = os.stat(path)
    return path, f"{found.st_size} {found.st_mtime_ns}"


def digest(texts: Mapping[str, bytes]) -> str:
    """Returns a hash of the names and contents of files. texts: the contents, by name."""
    found = hashlib.sha256()
    for name, text in texts.items():
        found.update(name.encode() + b"\0" + str(len(text)).encode() + b"\0" + text)
    return found.hexdigest()


def read(paths: Iterable[Path]) -> dict[str, bytes]:
    """Returns the contents of files by name, in the order of their names."""
    return {path.name: path.read_bytes() for path in sorted(paths)}


def build_library(
    part: str,
    sources: Sequence[Path],
    folders: Sequence[Path] = (),
    flags: Sequence[str] = (),
    texts: Mapping[str, bytes] | None = None,
) -> Path:
    """Returns the path of a shared object that is built from C files, unless it is in the cache
    already. Raises BuildError.

    If P4NATIVE_SANITIZE is 1, the shared object has the address and undefined-behaviour sanitizers,
    and the process must have libasan preloaded. folders: where headers are searched. flags: flags
    in addition to LIBRARY. texts: generated headers, by name.
    """
    files = [*sources, *(file for each in folders for file in sorted(each.glob("*.h")))]
    contents = [digest(texts or {}), *(digest(read([file])) for file in files)]
    sanitized = SANITIZED if os.environ.get("P4NATIVE_SANITIZE") == "1" else ()
    return build(
        part,
        [str(source.resolve()) for source in sources],
        (*LIBRARY, *flags, *sanitized),
        ".so",
        " ".join(contents),
        texts or {},
        [folder.resolve() for folder in folders],
    )


def build(
    part: str,
    sources: Sequence[str],
    flags: Sequence[str],
    suffix: str,
    content: str,
    texts: Mapping[str, bytes],
    folders: Sequence[Path] = (),
) -> Path:
    """Returns the path of a file that the compiler makes of the sources, unless it is in the cache
    already. If several processes ask for the same file at once, the first builds it and the others
    wait. Raises BuildError.

    part: the folder in the cache. sources: absolute paths, or names of `texts`, which are put into
    the folder in which the compiler works. content: a text that identifies, together with the
    flags, the compiler and the processor, what is built. folders: where headers are searched.
    """
    path, version = _compiler(os.environ.get("CC"))
    folder = _own_folder(part)
    target = folder / f"{_key(path, version, flags, content)}{suffix}"
    if not target.exists():
        included = ["-I.", *(f"-I{each}" for each in folders)]
        try:
            _build_once([path, *flags, *included, *sources], target, texts)
        except OSError as error:
            raise _unwritable(folder, error) from None
    return target


def _build_once(command: Sequence[str], target: Path, texts: Mapping[str, bytes]) -> None:
    lock = target.with_suffix(".lock")
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            if not target.exists():
                _compile(command, target, texts)
        finally:
            lock.unlink(missing_ok=True)


def _key(path: str, version: str, flags: Sequence[str], content: str) -> str:
    parts = (path, version, *flags, _processor(), content)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@lru_cache
def _processor() -> str:
    """Returns a description of the processor, with everything on which the flags NATIVE depend. The
    result is kept in memory, because reading it takes long on machines with many processors."""
    try:
        lines = CPU_INFO.read_text().split("\n\n", 1)[0].splitlines()
    except OSError:
        return platform.machine()
    return "".join(line for line in lines if line.startswith(PROCESSOR))


def _own_folder(part: str) -> Path:
    """Returns the folder of `part` in the cache and makes it if it is missing. Raises BuildError if
    another user could have put files there, because the files are loaded as code."""
    folder = cache_folder() / part
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None
    for path in (cache_folder(), folder):
        why = why_not_ours(path, follow_link=True)
        if why is not None:
            raise BuildError(
                f"{path}: {why}, and what is there is loaded as code: set P4NATIVE_CACHE to a"
                " folder that only you can write to"
            )
    return folder


def _unwritable(folder: Path, error: OSError) -> BuildError:
    return BuildError(f"{folder}: cannot be written: {error.strerror}; set P4NATIVE_CACHE")


def _compile(command: Sequence[str], target: Path, texts: Mapping[str, bytes]) -> None:
    """Compiles into a temporary folder beside the target and then renames the result, so that other
    processes see a complete file or none."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        for name, text in texts.items():
            (Path(scratch) / name).write_bytes(text)
        done = _run([*command, "-o", "made"], scratch)
        if done.returncode:
            said = (line for line in done.stderr.splitlines() if "error" in line)
            raise CompileError(f"{command[0]} failed: {next(said, done.stderr[:200])}")
        (Path(scratch) / "made").replace(target)


def _run(command: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise CompileError(f"{command[0]} took more than {LIMIT_S} s") from None
    except OSError as error:
        # A switch that has become another user may not be allowed to run what root may.
        raise BuildError(f"{command[0]} cannot be run: {error.strerror}") from None
