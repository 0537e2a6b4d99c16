"""Gives up root's privileges once everything that needs them is open.

From then on, the process is another user and cannot go back. Code that is compiled and run for
P4Runtime clients or for packets can therefore not do what root can.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from p4native.common.c_build import cache_folder
from p4native.common.private_folders import make_private
from p4native.switch.build import runtime_texts

NOBODY = "nobody"
PR_SET_NO_NEW_PRIVS = 38  # linux/prctl.h


class PrivilegeError(Exception):
    """Raised if privileges cannot be given up as requested. The message is one line."""


@dataclass(frozen=True)
class Account:
    """The user as whom the switch runs after it has dropped its privileges."""

    name: str
    uid: int
    gid: int


def account(name: str | None) -> Account | None:
    """Returns the user to switch to: `name`, or `nobody` by default.

    Returns None if there are no privileges to drop. This is so for an ordinary user. It is also so
    for the root of a user namespace that maps no other user, who has no privileges outside the
    namespace.
    """
    wanted = NOBODY if name is None else name
    try:
        found = pwd.getpwnam(wanted)
    except KeyError:
        raise PrivilegeError(f"there is no user {wanted}: name one with --user") from None
    if found.pw_uid == 0:
        raise PrivilegeError(f"{wanted} is root: name an ordinary user")
    if os.geteuid() != 0:
        if name is not None and found.pw_uid != os.geteuid():
            raise PrivilegeError(f"only root can become {name}")
        return None
    if not _is_mapped("uid_map", found.pw_uid) or not _is_mapped("gid_map", found.pw_gid):
        return None
    return Account(wanted, found.pw_uid, found.pw_gid)


def _is_mapped(which: str, number: int) -> bool:
    """Whether this user namespace maps the user id or group id `number` (user_namespaces(7))."""
    lines = Path(f"/proc/self/{which}").read_text().splitlines()
    ranges = [tuple(map(int, line.split())) for line in lines]
    return any(first <= number < first + count for first, _, count in ranges)


def forbid_new_privileges() -> None:
    """Prevents programs that this process executes from gaining privileges. A thread inherits this
    from the thread that started it, so call this before starting any."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise PrivilegeError(f"no_new_privs: {os.strerror(ctypes.get_errno())}")


def drop(to: Account) -> None:
    """Changes to that user in all threads. From then on, compiled programs are kept in a cache for
    that user only."""
    runtime_texts()
    cache = _open_cache(to)
    try:
        os.setgroups([to.gid])
        os.setresgid(to.gid, to.gid, to.gid)
        os.setresuid(to.uid, to.uid, to.uid)
    except OSError as error:
        raise PrivilegeError(f"cannot become {to.name}: {error.strerror}") from None
    if int(_status("CapPrm"), 16):
        raise PrivilegeError(f"the switch still has capabilities as {to.name}: {_status('CapPrm')}")
    os.environ["P4NATIVE_CACHE"] = f"/proc/self/fd/{cache}"


def _open_cache(to: Account) -> int:
    """Opens the user's folder below root's cache and returns its descriptor.

    Only root can reach the folder by its path. No other process of that user can therefore leave a
    library there for this process to load. This process itself keeps the folder open.
    """
    folder = cache_folder().absolute() / "dropped"
    try:
        make_private(folder)
        own = folder / str(to.uid)
        own.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.fchown(descriptor, to.uid, to.gid)
        os.fchmod(descriptor, 0o700)
    except OSError as error:
        raise PrivilegeError(
            f"{folder}: {error.strerror}: set P4NATIVE_CACHE to another folder"
        ) from None
    return descriptor


def _status(key: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{key}:"))
