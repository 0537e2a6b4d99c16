"""setup.sh --peers trusts p4lang's key and no other, with stand-ins for the network and for apt."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import needs
import pytest

pytestmark = [
    pytest.mark.root,
    needs.mark("gnupg"),
]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = "/etc/apt/sources.list.d"
KEYRINGS = "/usr/share/keyrings"
# What setup.sh would write to the system is written to folders that only this process sees.
CONTAINED = f"""
mount -t tmpfs tmpfs {SOURCES} && mount -t tmpfs tmpfs {KEYRINGS} || exit 99
./setup.sh --peers; code=$?
cp -r {SOURCES} {KEYRINGS} "$WRITTEN"
exit $code
"""
CURL = """#!/bin/bash
printf '%s\\n' "$*" >>"$ASKED"
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
cat "$SERVED" >"$out"
"""
WANTED = "cat pyproject.toml setup.sh | sha256sum; readlink -f /usr/bin/python3"  # its stamp
STAND_INS = {
    "curl": CURL,
    "apt-get": "#!/bin/bash\nexit 0\n",
    "apt-cache": "#!/bin/bash\nexit 0\n",
    "p4run": "#!/bin/bash\nexit 0\n",
}


class Checkout:
    """A copy of setup.sh that finds its virtual environment up to date."""

    def __init__(self, folder: Path, key_id: str | None = None) -> None:
        """key_id: the end of the fingerprint that setup.sh expects, if not that of p4lang's key."""
        self.folder, self.programs = folder / "checkout", folder / "bin"
        self.written, self.asked = folder / "written", folder / "asked"
        for made in (self.folder / ".venv/bin", self.programs, self.written):
            made.mkdir(parents=True)
        shutil.copy(ROOT / "pyproject.toml", self.folder)
        script = self.folder / "setup.sh"
        shutil.copy(ROOT / "setup.sh", script)
        if key_id:
            script.write_text(re.sub("KEY_ID=[0-9A-F]{16}", f"KEY_ID={key_id}", script.read_text()))
        for name, text in STAND_INS.items():
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)
        (self.folder / ".venv/bin/python").symlink_to("/usr/bin/true")
        stamp = subprocess.run(
            ["bash", "-c", WANTED], cwd=self.folder, capture_output=True, check=True
        )
        (self.folder / ".venv/agglab-setup").write_bytes(stamp.stdout)

    def peers(self, served: bytes) -> subprocess.CompletedProcess[str]:
        """`setup.sh --peers` where the network answers with these bytes."""
        answer = self.folder / "answer"
        answer.write_bytes(served)
        environment = {
            "PATH": f"{self.programs}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.folder),
            "SERVED": str(answer),
            "ASKED": str(self.asked),
            "WRITTEN": str(self.written),
        }
        return subprocess.run(
            ["unshare", "--mount", "bash", "-c", CONTAINED],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
        )

    def files(self) -> set[str]:
        """What setup.sh left of a repository and its key."""
        return {path.name for path in self.written.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, bytes]]:
    """(fingerprint, armoured public key) of two keys made here."""
    home = tmp_path_factory.mktemp("gnupg")
    home.chmod(0o700)

    def gpg(*words: str) -> bytes:
        command = ["gpg", "--homedir", str(home), "--batch", "--passphrase", "", *words]
        return subprocess.run(command, capture_output=True, check=True).stdout

    made = []
    for name in ("one@example.org", "two@example.org"):
        gpg("--quick-generate-key", name, "ed25519", "sign", "never")
        listed = gpg("--with-colons", "--list-keys", name).decode()
        fingerprint = next(r.split(":")[9] for r in listed.splitlines() if r.startswith("fpr"))
        made.append((fingerprint, gpg("--armor", "--export", name)))
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=True)
    return made


Keys = list[tuple[str, bytes]]


def test_the_pinned_key_is_taken_over_tls(tmp_path: Path, keys: Keys) -> None:
    checkout = Checkout(tmp_path, keys[0][0][-16:])
    done = checkout.peers(keys[0][1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.files() == {"p4lang.list", "p4lang.gpg"}
    source = next(checkout.written.rglob("p4lang.list")).read_text()
    assert "signed-by=/usr/share/keyrings/p4lang.gpg] https://" in source
    assert "--proto =https --proto-redir =https" in checkout.asked.read_text()
    assert "http:" not in checkout.asked.read_text()


@pytest.mark.parametrize("served", ["other", "both", "nothing", "text"])
def test_any_other_key_installs_nothing(tmp_path: Path, keys: Keys, served: str) -> None:
    answers = {
        "other": keys[1][1],
        "both": keys[0][1] + keys[1][1],
        "nothing": b"",
        "text": b"<html>moved</html>",
    }
    checkout = Checkout(tmp_path, keys[0][0][-16:])
    done = checkout.peers(answers[served])
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.files() == set()
    assert "fingerprint is" in done.stderr and f"should end in {keys[0][0][-16:]}" in done.stderr
    assert "going on with the native switch" in done.stdout


def test_p4langs_own_key_is_the_one_that_is_pinned(tmp_path: Path, keys: Keys) -> None:
    done = Checkout(tmp_path).peers(keys[0][1])
    assert "should end in A4666B6753C0F7D1" in done.stderr
