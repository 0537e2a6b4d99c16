"""A run in a chroot: whoever joins its mount namespace is in the chroot too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import needs
import pytest

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
# /mnt/marker is there in the chroot only.
PREPARE = """
set -e
mount --rbind / "$1"
mount -t tmpfs tmpfs "$1/mnt"
echo inside >"$1/mnt/marker"
cd "$1/mnt"
exec chroot "$1" "$2" -c "$3"
"""
JOIN = """
import os, subprocess
from agglab.testbed.base import kernel
os.chdir("/mnt")
kernel.unshare(kernel.CLONE_NEWNS)
kernel.private_mounts()
print(os.getcwd())
subprocess.run(["nsenter", f"--mount=/proc/{os.getpid()}/ns/mnt", "cat", "/mnt/marker"])
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=True)
print(os.path.exists("/mnt/marker"))
"""


def test_joining_the_mount_namespace_leads_into_the_chroot(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        needs.skip_lacking("a root that is a mount", "run the tests outside the chroot")
    command = ["unshare", "--mount", "bash", "-c", PREPARE, "_"]
    done = subprocess.run(
        [*command, str(tmp_path), sys.executable, JOIN],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == ["/mnt", "False", "inside"]
