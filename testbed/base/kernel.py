"""Functions for system calls that Python 3.10 does not offer: namespaces, mounts, parent-death
signals."""

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
CLONE_NEWIPC = 0x08000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MS_REC, MS_PRIVATE = 0x4000, 0x40000
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 0x20, 0x1000
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 1, 28, 38
SECBIT_NOROOT_LOCKED = 3
CAPABILITY_VERSION = 0x20080522
SYS_OPEN_TREE, SYS_MOVE_MOUNT = 428, 429  # on every architecture
OPEN_TREE_CLONE, AT_EMPTY_PATH, AT_RECURSIVE, MOVE_MOUNT_F_EMPTY_PATH = 1, 0x1000, 0x8000, 4
AT_FDCWD = -100

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments: object) -> int:
    """Calls a libc function. Raises OSError with the function's name if it returns a negative
    number."""
    result = int(getattr(_libc, function)(*arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", flags)


def enter_namespaces(kinds: int) -> None:
    """Moves this process into new namespaces, among them one of mounts, which stay private. An
    ordinary user gets a user namespace first."""
    if os.geteuid() != 0:
        own_user_namespace()
    unshare(kinds)
    private_mounts()


def own_user_namespace() -> None:
    """Makes this process root of a new user namespace, which has no effect outside it. Raises
    OSError if that is not allowed."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER)
    # user_namespaces(7): a group may be mapped only by who has given up setgroups.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def can_become(user: int) -> bool:
    """Returns whether this process is root of a user namespace that has all users up to this
    number."""
    first, _, count = Path("/proc/self/uid_map").read_text().split()[:3]
    return os.geteuid() == 0 and int(first) == 0 and int(count) > user


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _call(
        "mount",
        source.encode(),
        target.encode(),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
    )


def unmount(target: str, flags: int = 0) -> None:
    _call("umount2", target.encode(), flags)


def pivot_root(new: str, old: str) -> None:
    """Makes `new` the root of this process's mount namespace, and puts the previous one at
    `old`."""
    _call("pivot_root", new.encode(), old.encode())


def control_process(operation: int, value: int) -> None:
    """Sets a property of this process (prctl)."""
    _call("prctl", operation, ctypes.c_ulong(value), 0, 0, 0)


def drop_capabilities() -> None:
    """Gives up all capabilities of this process."""
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    _call("capset", header, data)


def private_mounts() -> None:
    """Makes mounts private after CLONE_NEWNS: no mount is visible outside, and this process's root
    becomes the namespace's root.

    In a chroot the two roots would differ, and a process that joins the namespace (mnexec) would be
    outside the chroot.
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
    """Returns the mount of a descriptor and the inode in it. The inode alone does not identify the
    mount, because a bind mount has the inode of the folder that it shows."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    return next(line for line in lines if line.startswith("mnt_id")), os.fstat(descriptor).st_ino


def _join_own_mounts() -> None:
    """Makes the mount namespace's root the working directory and the root of this process."""
    descriptor = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    try:
        _call("setns", descriptor, CLONE_NEWNS)
    finally:
        os.close(descriptor)


def die_with_parent(parent: int) -> None:
    """Makes the kernel kill this process (SIGKILL) when the thread that forked it ends. parent: the
    pid of the process that forked it."""
    _call("prctl", PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    # The parent may have died before prctl; 0 is a parent outside this pid namespace.
    if os.getppid() not in (parent, 0):
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def network_namespace(pid: int) -> Iterator[None]:
    """Moves the calling thread, and programs that it starts, into the network namespace of process
    `pid` while the context lasts."""
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
