"""Building and caching the C helper; its tests once more under the sanitizers."""

import os
import subprocess
import sys
from pathlib import Path

import needs
import pytest

from agglab.hosts import library
from p4native.common.c_build import BuildError

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SWITCHML = ROOT / "systems/switchml/tests"
CHECKED = {
    "values": (
        *(HERE / f"test_{name}.py" for name in ("wire", "quantise", "tensor_parts", "pieces")),
        *(SWITCHML / f"test_{name}.py" for name in ("fixed_point", "narrow_worker")),
    ),
    "rounds": (
        *(HERE / f"test_{name}.py" for name in ("round_driver", "hosts_buffers")),
        *(SWITCHML / f"test_{name}.py" for name in ("worker", "worker_fuzz", "all_reducer")),
    ),
    "systems": tuple(ROOT / f"systems/{name}/tests/test_endpoint.py" for name in ("ring", "ps")),
}
"""Parts of the tests that run in one process: it takes long to start under the sanitizers, and all
parts together come near to the limit of a test on a busy machine."""
TOO_LONG = (
    "exact_under_loss or fractions_model or refused_port or sums_fit"
    " or however_often or fills_a_link or little_more_is_sent"
)


def preloaded():
    """The sanitizers' run-time libraries: they must come before Python's own memory allocator."""
    names = ("libasan.so", "libubsan.so")
    paths = [
        subprocess.run(
            ["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    return " ".join(paths)


def run_sanitized(*arguments):
    options = {
        "ASAN_OPTIONS": "detect_leaks=0",
        "P4NATIVE_SANITIZE": "1",
        "LD_PRELOAD": preloaded(),
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | options,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
@pytest.mark.parametrize("part", CHECKED)
def test_the_tests_of_this_part_pass_under_the_sanitizers(part):
    selection = ["-k", f"not ({TOO_LONG})", "-p", "no:cacheprovider"]
    done = run_sanitized("-m", "pytest", "-q", "-x", *selection, *map(str, CHECKED[part]))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_the_native_step_agrees_with_the_model_under_the_sanitizers():
    seeds = "test_the_native_step_and_the_python_model_agree_packet_by_packet[1]"
    done = run_sanitized("-m", "pytest", "-q", f"{SWITCHML / 'test_worker_model.py'}::{seeds}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_the_sanitizers_are_at_work():
    """A batch that claims more rows than it has is caught."""
    overrun = (
        "import numpy as np; from agglab.hosts import library; values = np.zeros(4, np.float32);"
        "library.load().quantise_exponents(values.ctypes.data, 99, 99, values.ctypes.data)"
    )
    done = run_sanitized("-c", overrun)
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr


@pytest.mark.long
def test_it_is_built_once_and_again_for_other_flags(tmp_path, monkeypatch):
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path / "new" / "cache"))
    first = library.built()
    built_ns = first.stat().st_mtime_ns
    assert library.built() == first and first.stat().st_mtime_ns == built_ns
    monkeypatch.setattr(library, "FLAGS", [*library.FLAGS, "-DOTHER"])
    assert library.built() != first
    assert {path.suffix for path in first.parent.iterdir()} == {".so"}


@pytest.mark.long
@needs.mark("clang")
def test_clang_builds_it_without_a_warning_too(tmp_path, monkeypatch):
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path))
    monkeypatch.setenv("CC", "clang")
    assert library.built().exists()


def test_an_agent_is_told_that_there_is_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match=r"^no C compiler: 'no-such-compiler' is not in PATH"):
        library.built()


def test_what_the_compiler_says_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path))
    monkeypatch.setattr(library, "FLAGS", [*library.FLAGS, "-std=nowhere"])
    with pytest.raises(BuildError, match=r"^[^\n]*nowhere[^\n]*$"):
        library.built()
    assert not list(tmp_path.rglob("*.so"))
