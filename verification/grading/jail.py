"""Starts a student's Python file where it sees nothing but Python, NumPy, `agglab.hosts` and
itself: in new namespaces, with a root of its own that can only be read, without a network and
without other processes, and with limits."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import p4native
from agglab.testbed.base import kernel
from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.base.paths import REPOSITORY
from agglab.verification.grading import student

CPU_S, MEMORY_BYTES, FILE_BYTES, FILES = 30, 1 << 30, 1 << 20, 32
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache"),
    *("/etc/alternatives", "/dev/null", "/dev/zero", "/dev/urandom"),
)
HOME = "/student"
STUDENT = Path(student.__file__).resolve()
FIRST_USER, USERS = 60_000, 4096
"""As root, a student's process becomes one of these users, which own nothing."""
KEPT_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
READ_ONLY = kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY
SPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWNET | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC
"""The new namespaces. The next child is the first process of the pid namespace."""
TMPFS = kernel.MS_NOSUID | kernel.MS_NODEV


def require() -> None:
    """Raises MachineLacks if the kernel cannot shut a student's Python off."""
    pid = os.fork()
    if pid == 0:
        try:
            kernel.enter_namespaces(SPACES)
            os._exit(0)
        except OSError:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise MachineLacks(
            "user and mount namespaces, without which a student's Python could read the solution",
            "allow them (docs/grading.md), or add --trust if you trust who hands it in",
        )


@dataclass(frozen=True)
class Jail:
    """How students' files are started. hidden: folders that they must not see, even if they lie
    within Python's. is_closed: False with --trust, if the kernel has no namespaces."""

    hidden: Sequence[Path]
    is_closed: bool = True

    @contextlib.contextmanager
    def started(self, path: Path, folder: Path) -> Iterator[socket.socket]:
        """Yields the socket on which a process answers requests about the file (student.py), and
        ends that process. folder: where its root is made."""
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._child(parent, path, folder, theirs)
        theirs.close()
        try:
            yield ours
        finally:
            ours.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
            os.waitpid(pid, 0)

    def _child(self, parent: int, path: Path, folder: Path, channel: socket.socket) -> NoReturn:
        """Becomes the student's process, or its parent if there are namespaces."""
        try:
            kernel.die_with_parent(parent)
            if not self.is_closed:
                _execute(str(path), channel, processes=None)
            is_root = kernel.can_become(FIRST_USER + USERS)
            kernel.enter_namespaces(SPACES)
            this = os.getpid()
            pid = os.fork()
            if pid == 0:
                kernel.die_with_parent(this)
                self._build(path, folder)
                _drop(is_root, this)
                _execute(f"{HOME}/{path.name}", channel, processes=1)
            channel.close()
            os.waitpid(pid, 0)
        finally:
            os._exit(1)

    def _build(self, path: Path, folder: Path) -> None:
        """Makes a root of read-only parts, and enters it."""
        root = folder / "root"
        root.mkdir(exist_ok=True)
        kernel.mount("tmpfs", str(root), "tmpfs", TMPFS, "size=16m,mode=755")
        self._show_parts(root)
        home = root / HOME.lstrip("/")
        home.mkdir()
        shutil.copyfile(path, home / path.name)
        (root / "tmp").mkdir(exist_ok=True)
        (root / "tmp").chmod(0o777)
        os.chdir(root)
        kernel.pivot_root(".", ".")
        kernel.unmount(".", kernel.MNT_DETACH)
        os.chdir("/tmp")

    def _show_parts(self, root: Path) -> None:
        """Shows the system's programs, Python, and of Agglab only what hosts need, wherever it is
        installed."""
        secret = (REPOSITORY, *self.hidden)
        for part in map(Path, SYSTEM):
            _show(part, root)
        _hide(secret, root)
        for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
            _show(Path(prefix), root)
        _hide([each for each in secret if each.is_relative_to(sys.prefix)], root)
        toolchain = (p4native.FOLDER / "__init__.py", p4native.FOLDER / "common")
        for part in (REPOSITORY / "hosts", REPOSITORY / "src", *toolchain, STUDENT):
            _show(part, root)


def _hide(folders: Sequence[Path], root: Path) -> None:
    """Puts an empty folder over each of these that the new root shows."""
    for folder in folders:
        inside = root / str(folder.resolve()).lstrip("/")
        if inside.is_dir():
            kernel.mount("tmpfs", str(inside), "tmpfs", TMPFS, "size=16k,mode=755")


def _show(part: Path, root: Path) -> None:
    """Shows a file or folder at the same path in the new root, where it can only be read."""
    place = root / str(part).lstrip("/")
    if not part.exists() or place.exists() or place.is_symlink():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if part.is_symlink():
        place.symlink_to(os.readlink(part))
        return
    if part.is_dir():
        place.mkdir()
    else:
        place.touch()
    kernel.mount(str(part), str(place), "none", kernel.MS_BIND | kernel.MS_REC)
    kept = os.statvfs(place).f_flag & KEPT_FLAGS
    kernel.mount("none", str(place), "none", READ_ONLY | kept)


def _drop(is_root: bool, number: int) -> None:
    """Gives up all privileges. number: makes users of processes differ."""
    if is_root:
        user = FIRST_USER + number % USERS
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    else:
        kernel.control_process(kernel.PR_SET_SECUREBITS, kernel.SECBIT_NOROOT_LOCKED)
        kernel.drop_capabilities()
    kernel.control_process(kernel.PR_SET_NO_NEW_PRIVS, 1)


def _execute(path: str, channel: socket.socket, processes: int | None) -> NoReturn:
    """Becomes a new Python that runs student.py. processes: how many its user may have; None for no
    limit."""
    nothing = os.open(os.devnull, os.O_RDWR)
    moved = os.dup(channel.fileno())
    for number in range(3):
        os.dup2(nothing, number)
    os.dup2(moved, student.SOCKET)
    os.closerange(student.SOCKET + 1, 4096)
    limits = {resource.RLIMIT_CPU: CPU_S, resource.RLIMIT_AS: MEMORY_BYTES}
    limits |= {resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_NOFILE: FILES}
    limits |= {resource.RLIMIT_CORE: 0}
    if processes is not None:
        limits[resource.RLIMIT_NPROC] = processes
    for kind, most in limits.items():
        resource.setrlimit(kind, (most, most))
    environment = {"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp"}
    os.execve(sys.executable, [sys.executable, "-I", str(STUDENT), path], environment)
