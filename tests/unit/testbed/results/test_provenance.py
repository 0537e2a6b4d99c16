"""What a manifest says of the machine: lines of /proc/cpuinfo as kernels write them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agglab.testbed.results import provenance

X86_64 = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: Some CPU 9\n\n"
ARM64 = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

"""


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [(X86_64, "Some CPU 9"), (ARM64, "ARM implementer 0x41 part 0xd0c"), ("", "")],
)
def test_the_processor_is_named(
    cpuinfo: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo * 2)
    monkeypatch.setattr(provenance, "CPU_INFO", tmp_path / "cpuinfo")
    assert provenance.machine()["cpu"] == model


def test_an_installed_copy_has_the_hash_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip puts P4 programs elsewhere than code: in share/, whose name sorts otherwise. A wheel has
    no tests."""
    sha256 = provenance.code_sha256.__wrapped__
    before = sha256()
    package, programs = tmp_path / "site/agglab", tmp_path / "share/agglab/p4"
    for part in provenance.CODE:
        ignored = shutil.ignore_patterns("tests")
        shutil.copytree(provenance.REPOSITORY / part, package / part, ignore=ignored)
    shutil.copytree(provenance.P4_FOLDER, programs)
    monkeypatch.setattr(provenance, "REPOSITORY", package)
    monkeypatch.setattr(provenance, "P4_FOLDER", programs)
    assert sha256() == before
    (programs / "switchml.p4").rename(programs / "switchml2.p4")
    renamed = sha256()
    assert renamed != before
    (package / "hosts/agent.py").write_text("pass\n")
    assert sha256() not in (before, renamed)
