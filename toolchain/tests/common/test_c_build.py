"""Compiling C once: what is built again, what is refused, and that each failure is one line."""

from __future__ import annotations

import ctypes
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from p4native.common import c_build

ANSWER = b"int answer(void) { return ANSWER; }"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path / "new" / "cache"))
    return tmp_path / "new" / "cache"


def built(content: str = "", flags: tuple[str, ...] = ("-DANSWER=42",)) -> Path:
    shared = ("-fPIC", "-shared", *flags)
    return c_build.build("part", ["answer.c"], shared, ".so", content, {"answer.c": ANSWER})


def test_it_is_built_once_and_again_for_other_flags_and_contents(cache: Path) -> None:
    first = built()
    assert ctypes.CDLL(str(first)).answer() == 42 and first.parent == cache / "part"
    built_ns = first.stat().st_mtime_ns
    assert built() == first and first.stat().st_mtime_ns == built_ns
    assert ctypes.CDLL(str(built(flags=("-DANSWER=43",)))).answer() == 43
    assert built("other") != first
    assert {path.suffix for path in first.parent.iterdir()} == {".so"}


def test_those_who_ask_at_once_wait_for_the_first(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []
    compile_it = c_build._compile
    monkeypatch.setattr(
        c_build, "_compile", lambda *given: (compiled.append(given), compile_it(*given))
    )
    with ThreadPoolExecutor(4) as threads:
        found = {each.result() for each in [threads.submit(built) for _ in range(4)]}
    assert len(found) == len(compiled) == 1


def test_a_header_that_changes_builds_it_again(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "answer.c").write_text('#include "answer.h"\n#include "made.h"\nint x = A + B;')
    (tmp_path / "answer.h").write_text("#define A 1")

    def value(made: bytes) -> int:
        sources, texts = [tmp_path / "answer.c"], {"made.h": made}
        path = c_build.build_library("part", sources, [tmp_path], ["-DC"], texts)
        return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "x").value

    assert value(b"#define B 1") == 2
    (tmp_path / "answer.h").write_text("#define A 2")
    assert (value(b"#define B 1"), value(b"#define B 2")) == (3, 4)


@pytest.mark.parametrize("line", ["flags\t: avx2", "Features\t: asimd", "CPU part\t: 0xd0c"])
def test_it_is_built_again_for_another_processor(
    line: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home folder may be shared by machines, an image be booted on another one."""
    monkeypatch.setattr(c_build, "CPU_INFO", tmp_path / "cpuinfo")

    def built_on(text: str) -> Path:
        (tmp_path / "cpuinfo").write_text(text)
        c_build._processor.cache_clear()
        return built()

    try:
        first = built_on(f"processor\t: 0\n{line}\nBogoMIPS\t: 1\n")
        assert built_on(f"processor\t: 0\n{line}\nBogoMIPS\t: 2\n") == first
        assert built_on(f"processor\t: 0\n{line}1\nBogoMIPS\t: 1\n") != first
    finally:
        c_build._processor.cache_clear()


def test_it_is_built_again_by_another_compiler(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built()
    script = tmp_path / "mycc"
    script.write_text(f'#!/bin/sh\nexec {c_build.compiler()} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    assert built() != first


def test_no_compiler_is_one_clear_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    said = r"^no C compiler: 'no-such-compiler' is not in PATH; install gcc, or set CC$"
    with pytest.raises(c_build.BuildError, match=said):
        built()
    monkeypatch.delenv("CC")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    c_build._compiler.cache_clear()
    with pytest.raises(c_build.BuildError, match=r"^no C compiler: install gcc \(apt-get"):
        built()


def test_what_the_compiler_says_is_told(cache: Path) -> None:
    with pytest.raises(c_build.CompileError, match="nowhere") as refused:
        built(flags=("-DANSWER=nowhere",))
    assert "\n" not in str(refused.value)
    assert not list((cache / "part").iterdir())


def test_a_compiler_that_cannot_be_run_is_one_line(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "mycc"
    script.write_text("no program")
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    with pytest.raises(c_build.BuildError, match=r"mycc cannot be run: Exec format error$"):
        built()


def test_a_cache_that_cannot_be_written_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path / "file"))
    said = r"file/part: cannot be written: Not a directory; set P4NATIVE_CACHE$"
    with pytest.raises(c_build.BuildError, match=said):
        built()


def test_a_cache_that_others_can_write_to_is_not_loaded_from(cache: Path) -> None:
    """Whoever can write there could leave a library under the name of one of ours."""
    folder = built().parent
    for path in (folder, cache):
        path.chmod(0o775)
        why = rf"^{path}: others may write to it, .* set P4NATIVE_CACHE to a folder [^\n]*$"
        with pytest.raises(c_build.BuildError, match=why):
            built()
        path.chmod(0o755)
    built()


def test_a_cache_of_somebody_else_is_not_loaded_from(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built()
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    with pytest.raises(c_build.BuildError, match=r"belongs to user .* set P4NATIVE_CACHE"):
        built()


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("P4NATIVE_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert c_build.cache_folder() == Path("/one")
    monkeypatch.delenv("P4NATIVE_CACHE")
    assert c_build.cache_folder() == Path("/two/p4native")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert c_build.cache_folder() == Path.home() / ".cache/p4native"
