"""A machine of its own: Debian's packages, Debian's kernel, booted under QEMU, and a command in it.

    python tests/machine/machine.py [--suite bookworm] [--chroot] [--results DIR] [COMMAND ...]

What `vagrant up` does, without a box and without a hypervisor's manager: debootstrap makes a root
file system, provision.sh sets it up, and COMMAND (`make scenario NAME=quickstart`) runs in the
repository there, without a network. Exit code: COMMAND's; 3 if this machine lacks something (named)
or the other could not be made. Nothing is left behind but what --results asks for.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PLACE = "agglab"  # the repository's folder in the machine's root directory, as with Vagrant
SCRIPT, STATUS = "var/lib/agglab-machine/command", "var/lib/agglab-machine/status"
NOT_COPIED = (
    *(".git", ".venv", ".peers", ".vagrant", "build", "results", "*.egg-info"),
    *("__pycache__", "*.so", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
)
PROGRAMS = {
    "debootstrap": "debootstrap",
    "mke2fs": "e2fsprogs",
    "debugfs": "e2fsprogs",
    "unshare": "util-linux",
}
EMULATOR = "qemu-system-x86_64"
# Inside another virtual machine KVM may show arch-capabilities and then refuse to set them.
CPU = "max,arch-capabilities=off"
SILENCE_S = 60
QUICKSTART = "make scenario NAME=quickstart"
# Without KVM a machine moves 12 Mbit/s at best, and starts programs for a minute: a quarter of the
# work, over links it can keep up with if it has processors; if not, sums are still to be right.
SLOW_QUICKSTART = (
    ".venv/bin/agglab run scenarios/quickstart.yaml --set workload.elements=250000 "
    "--set links.rate=1mbit --set timeouts.start=300s --set expect.link_bound_ratio.max=100"
)
KERNELS = {"debian": "linux-image-amd64", "ubuntu": "linux-image-virtual"}
COMPONENTS = {"debian": "main", "ubuntu": "main,universe"}  # Ubuntu's mininet is in universe
BASE = "systemd-sysv,udev,kmod,ca-certificates"
SPARE_BYTES = 2 << 30
# What of this machine's environment another needs to reach the same package registries.
CARRIED = re.compile(r"(?i:http_proxy|https_proxy|no_proxy)|PIP_.*")
PREPARE = """
set -e
mount -t proc proc "$1/proc"
mount -t sysfs sysfs "$1/sys"
mount -t tmpfs tmpfs "$1/run"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
exec chroot "$@"
"""
UNIT = """[Unit]
Description=The command this machine was booted for
After=multi-user.target
SuccessAction=poweroff
FailureAction=poweroff

[Service]
Type=oneshot
WorkingDirectory=/{place}
Environment=HOME=/root LANG=C.UTF-8 PYTHONUNBUFFERED=1
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStart=/bin/bash -c '/bin/bash /{script} 2>&1 | cat; echo $${{PIPESTATUS[0]}} >/{status}'
ExecStopPost=-/bin/sh -c 'echo machine: memory at most $(($(cat /sys/fs/cgroup/system.slice/\
agglab-machine.service/memory.peak) >> 20)) MB, file cache included'

[Install]
WantedBy=multi-user.target
"""


class Lacking(Exception):
    """What this machine lacks or could not make, in a line."""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", default="bookworm", help="Debian's or Ubuntu's, e.g. trixie")
    parser.add_argument("--chroot", action="store_true", help="do not boot: run it in a chroot")
    parser.add_argument("--results", type=Path, help="copy the machine's results folder to here")
    parser.add_argument("--memory-mb", type=int, default=4096)
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--timeout-s", type=int, default=7200, help="for the booted machine")
    parser.add_argument("command", nargs="*", help=f"{QUICKSTART}, if none is given")
    chosen = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        check_this_machine(boot=not chosen.chroot)
        with tempfile.TemporaryDirectory(prefix="agglab-machine-") as folder:
            return _made_and_run(Path(folder), chosen)
    except Lacking as lacking:
        print(f"machine: {lacking}", file=sys.stderr)
        return 3


def _made_and_run(work: Path, chosen: argparse.Namespace) -> int:
    root, command = work / "root", " ".join(chosen.command)
    make_root(root, chosen.suite)
    in_root(root, "provision.sh", f"/{PLACE}/provision.sh")
    if chosen.chroot:
        command = command or QUICKSTART
        status = in_root(root, command, "/bin/bash", "-c", f"cd /{PLACE} && {command}", check=False)
        if chosen.results:
            _keep(root / PLACE / "results", chosen.results)
        return status
    kernel = max((root / "boot").glob("vmlinuz-*"))
    emulator = Emulator(kernel, chosen.processors, chosen.memory_mb)
    how = accelerator(emulator)
    if not command:
        command = QUICKSTART if how == "kvm" else SLOW_QUICKSTART
    image = make_image(root, work / "disk", command)
    boot(emulator, how, image, chosen.timeout_s)
    if chosen.results:
        _debugfs(image, f"rdump /{PLACE}/results {work}")
        _keep(work / "results", chosen.results)
    status_text = _debugfs(image, f"cat /{STATUS}").strip()
    if not status_text.isdigit():
        raise Lacking("the machine stopped before its command had ended (its console is above)")
    return int(status_text)


def _keep(found: Path, results: Path) -> None:
    if found.is_dir():
        shutil.copytree(found, results, dirs_exist_ok=True)
        print(f"machine: its results are in {results}", flush=True)


def missing(boot: bool) -> str | None:
    """What this machine lacks to make another, in a line with the remedy; None if nothing."""
    if os.geteuid() != 0:
        return "needs root (a root file system has many owners): run as root, or with sudo"
    if boot and platform.machine() != "x86_64":
        return f"boots x86-64 machines only, and this one is {platform.machine()}"
    programs = {**PROGRAMS, **({EMULATOR: "qemu-system-x86"} if boot else {})}
    absent = [program for program in programs if shutil.which(program) is None]
    packages = sorted({programs[program] for program in absent})
    if absent:
        return f"needs {', '.join(absent)}: apt-get install {' '.join(packages)}"
    return None


def check_this_machine(boot: bool) -> None:
    lack = missing(boot)
    if lack is not None:
        raise Lacking(lack)


def make_root(root: Path, suite: str) -> None:
    """A minimal system of the suite with its kernel, and the repository in it."""
    vendor = vendor_of(suite)
    words = ["debootstrap", "--variant=minbase", f"--include={BASE}"]
    words += [f"--components={COMPONENTS[vendor]}", suite, str(root), *mirror(vendor)]
    with step(f"debootstrap {suite}"):
        run("unshare", "--mount", "--pid", "--fork", "--kill-child", *words)
    _carry_settings(root)
    in_root(root, "package lists", "apt-get", "update", "-q")
    kernel = KERNELS[vendor]
    in_root(root, kernel, "apt-get", "install", "-q", "-y", "--no-install-recommends", kernel)
    ignored = shutil.ignore_patterns(*NOT_COPIED)
    shutil.copytree(REPOSITORY, root / PLACE, symlinks=True, ignore=ignored)


def vendor_of(suite: str) -> str:
    """debian or ubuntu, as debootstrap's script for the suite says."""
    script = Path("/usr/share/debootstrap/scripts", suite)
    if not script.exists():
        raise Lacking(f"debootstrap knows no suite {suite}: a newer debootstrap may")
    return "ubuntu" if "ubuntu" in script.read_text() else "debian"


def mirror(vendor: str) -> list[str]:
    """The one this machine's own packages come from; debootstrap's choice if it is another's."""
    words = ("apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages")
    known = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    same = [line.split()[1] for line in known if line.lower().startswith(f"{vendor} ")]
    return same[:1]


def _carry_settings(root: Path) -> None:
    """How this machine reaches package registries: resolver, proxy, authorities of its own."""
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    own = Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
        in_root(root, "certificates", "update-ca-certificates")
    proxies = subprocess.run(["apt-config", "dump"], capture_output=True, text=True).stdout
    lines = [line for line in proxies.splitlines() if re.match(r"Acquire::https?::Proxy", line)]
    (root / "etc/apt/apt.conf.d/90proxy").write_text("".join(f"{line}\n" for line in lines))
    (root / "etc/hostname").write_text(f"{PLACE}\n")
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {PLACE}\n")
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")  # start no services here
    (root / "usr/sbin/policy-rc.d").chmod(0o755)


def in_root(root: Path, what: str, *command: str, check: bool = True) -> int:
    """Run a command in the root file system, in mount and pid namespaces that end with it."""
    environment = {key: value for key, value in os.environ.items() if CARRIED.fullmatch(key)}
    environment |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    environment |= {"DEBIAN_FRONTEND": "noninteractive", "PYTHONUNBUFFERED": "1"}
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", PREPARE, "_"]
    with step(what):
        return run(*words, str(root), *command, environment=environment, check=check)


def make_image(root: Path, image: Path, command: str) -> Path:
    """The root file system as an ext4 image; COMMAND becomes the service it boots for."""
    unit = UNIT.format(place=PLACE, script=SCRIPT, status=STATUS)
    (root / SCRIPT).parent.mkdir(parents=True)
    (root / SCRIPT).write_text(f"{command}\n")
    service = root / "etc/systemd/system/agglab-machine.service"
    service.write_text(unit)
    wants = service.parent / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / service.name).symlink_to(f"../{service.name}")
    # A login there would hang up on whoever has the console open.
    (service.parent / "serial-getty@ttyS0.service").symlink_to("/dev/null")
    with (root / "etc/fstab").open("a") as table:
        table.write("/dev/vda / ext4 defaults 0 0\n")
    used = sum(path.lstat().st_blocks * 512 for path in root.rglob("*"))
    with step(f"image of {used >> 20} MB"):
        image.touch()
        os.truncate(image, used * 5 // 4 + SPARE_BYTES)
        run("mke2fs", "-q", "-t", "ext4", "-d", str(root), str(image))
    return image


@dataclass(frozen=True)
class Emulator:
    """How QEMU runs the kernel of a root file system."""

    kernel: Path
    processors: int
    memory_mb: int

    @property
    def what(self) -> str:
        release = self.kernel.name.removeprefix("vmlinuz-")
        return f"{release}, {self.processors} processors, {self.memory_mb} MB"

    def words(self, accelerator: str) -> list[str]:
        ramdisk = self.kernel.with_name(self.kernel.name.replace("vmlinuz", "initrd.img"))
        append = "root=/dev/vda rw console=ttyS0 panic=-1 systemd.show_status=0"
        size = ["-smp", str(self.processors), "-m", str(self.memory_mb)]
        console = ["-nodefaults", "-display", "none", "-serial", "stdio", "-nic", "none"]
        kernel = ["-kernel", str(self.kernel), "-initrd", str(ramdisk), "-append", append]
        device = ["-no-reboot", "-device", "virtio-rng-pci"]
        return [EMULATOR, "-accel", accelerator, "-cpu", CPU, *size, *console, *kernel, *device]


def accelerator(emulator: Emulator) -> str:
    """KVM where this kernel starts under it. That /dev/kvm can be opened is not enough: a machine
    that is virtual itself may offer it, and only to kernels made for that."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        with step("does the kernel start under KVM?"):
            if _starts(emulator.words("kvm"), SILENCE_S):
                return "kvm"
    print("machine: no KVM here: ten times slower", flush=True)
    return "tcg,thread=multi"


def _starts(words: Sequence[str], seconds: float) -> bool:
    """Whether the kernel says its name within that time."""
    with _started(words) as process:
        lines = Console(process, time.monotonic() + seconds).lines()
        return any("Linux version" in line for line in lines)


def boot(emulator: Emulator, how: str, image: Path, timeout_s: float) -> None:
    """Until the machine has switched itself off; its console is printed as it comes."""
    drive = ["-drive", f"file={image},format=raw,if=virtio,cache=unsafe"]
    with step(emulator.what):
        _show([*emulator.words(how), *drive], timeout_s)


def _show(words: Sequence[str], timeout_s: float) -> None:
    """Print what the machine's console says, but for the kernel. Lacking if it fails."""
    with _started(words) as process:
        console = Console(process, time.monotonic() + timeout_s)
        for line in console.lines():
            if not re.match(r"\[ *\d+\.\d+\] ", line):
                print("|", line, flush=True)
        if time.monotonic() > console.deadline:
            raise Lacking("the machine did not end in time (--timeout-s)")
        if process.wait() != 0:
            raise Lacking(f"{words[0]} ended with code {process.returncode}")


@contextmanager
def _started(words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Console:
    """What a process prints, until it has ended or the (monotonic) deadline has come."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        self.deadline = deadline
        assert process.stdout is not None
        self._output = process.stdout.fileno()

    def lines(self) -> Iterator[str]:
        """Each as soon as it is whole; the last one may not be."""
        waiting = selectors.DefaultSelector()
        waiting.register(self._output, selectors.EVENT_READ)
        rest = b""
        while waiting.select(max(0.0, self.deadline - time.monotonic())):
            read = os.read(self._output, 65536)
            if not read:
                break
            *lines, rest = (rest + read).split(b"\n")
            yield from (_plain(line) for line in lines)
        if rest:
            yield _plain(rest)


def _plain(line: bytes) -> str:
    """Without what moves a terminal's cursor."""
    return re.sub(r"\x1b[\[\]()][0-9;?]*[A-Za-z]?|\r", "", line.decode(errors="replace"))


def _debugfs(image: Path, request: str) -> str:
    done = subprocess.run(["debugfs", "-R", request, image], capture_output=True, text=True)
    return done.stdout


def run(*command: str, environment: dict[str, str] | None = None, check: bool = True) -> int:
    """Its output is printed, each line marked; Lacking if it fails and that matters."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            print("|", line.rstrip(), flush=True)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if check and status != 0:
        raise Lacking(f"this failed with code {status}: {shlex.join(command)}")
    return status


@contextmanager
def step(what: str) -> Iterator[None]:
    print(f"machine: {what} ...", flush=True)
    start = time.monotonic()
    yield
    print(f"machine: {what}: {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
