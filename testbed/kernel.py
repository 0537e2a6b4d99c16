"""System calls that Python 3.10 has no name for: namespaces, mounts, parent-death signals."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
SYS_OPEN_TREE, SYS_MOVE_MOUNT = 428, 429  # on every architecture
OPEN_TREE_CLONE, AT_EMPTY_PATH, AT_RECURSIVE, MOVE_MOUNT_F_EMPTY_PATH = 1, 0x1000, 0x8000, 4
AT_FDCWD = -100

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments: object) -> int:
    """Call libc's function; OSError with its name when it returns a negative number."""
    result = int(getattr(_libc, function)(*arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", flags)


def own_user_namespace() -> None:
    """Be root of a new user namespace; outside of it nothing changes. OSError if not allowed."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    # user_namespaces(7): a group may be mapped only by who has given up setgroups.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def mount(source: str, target: str, kind: str, flags: int) -> None:
    _call(
        "mount",
        source.encode(),
        target.encode(),
        kind.encode(),
        ctypes.c_ulong(flags),
        None,
    )


def unmount(target: str) -> None:
    _call("umount2", target.encode(), 0)


def private_mounts() -> None:
    """After CLONE_NEWNS: no mount is seen outside, and the namespace's root is this process's.

    In a chroot it would not be, and whoever joins the namespace (mnexec) would be outside of it.
    """
    folder = os.getcwd()
    ours = os.open("/", os.O_PATH)
    place = _place(ours)
    _join_own_mounts()
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    roots = os.open("/", os.O_PATH)
    if _place(roots) != place:
        flags = OPEN_TREE_CLONE | AT_EMPTY_PATH | AT_RECURSIVE
        tree = _call("syscall", SYS_OPEN_TREE, ours, b"", flags)
        _call("syscall", SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, b"/", MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
        _join_own_mounts()  # to the root's topmost mount
    os.close(ours)
    os.close(roots)
    os.chdir(folder)


def _place(descriptor: int) -> tuple[str, int]:
    """Which mount, and which of its folders: a bind mount has the inode of what it shows."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    return next(line for line in lines if line.startswith("mnt_id")), os.fstat(descriptor).st_ino


def _join_own_mounts() -> None:
    """The working directory and the root become the mount namespace's root."""
    descriptor = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    try:
        _call("setns", descriptor, CLONE_NEWNS)
    finally:
        os.close(descriptor)


def die_with_parent(parent: int) -> None:
    """SIGKILL this process when the thread that forked it ends; `parent` is that process's pid."""
    _call("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    # The parent may have died before prctl; 0 is a parent outside this pid namespace.
    if os.getppid() not in (parent, 0):
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def network_namespace(pid: int) -> Iterator[None]:
    """The calling thread, and programs it starts, are in process pid's network namespace inside."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        away = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
        try:
            _call("setns", away, CLONE_NEWNET)
        finally:
            os.close(away)
        try:
            yield
        finally:
            _call("setns", home, CLONE_NEWNET)
    finally:
        os.close(home)
