"""Whole outputs of small programs, compared with blessed ones: `BLESS=1 pytest ...` rewrites."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from back_program import compile_path, without_sources
from google.protobuf import text_format

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = sorted(GOLDEN.glob("*.p4"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_output_is_the_blessed_one(path: Path) -> None:
    document, info, errors = compile_path(path)
    assert document is not None, errors
    assert document["program"] == str(path)
    document["program"] = path.name
    outputs = {
        ".json": json.dumps(without_sources(document), indent=1) + "\n",
        ".p4info.txtpb": text_format.MessageToString(info),
    }
    for suffix, text in outputs.items():
        blessed = path.with_suffix(suffix)
        if os.environ.get("BLESS"):
            blessed.write_text(text)
        assert text == blessed.read_text(), f"{blessed.name} differs; BLESS=1 takes the new one"


def test_the_folder_holds_no_leftovers() -> None:
    wanted = {p.with_suffix(s) for p in PROGRAMS for s in (".p4", ".json", ".p4info.txtpb")}
    assert set(GOLDEN.iterdir()) == wanted


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_source_places_point_into_the_file(path: Path) -> None:
    document, _, _ = compile_path(path)
    lines = path.read_text().split("\n")
    seen = 0
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            info = value.get("source_info")
            if info is not None and info["filename"] == str(path):
                assert info["source_fragment"] == lines[info["line"] - 1].strip()
                seen += 1
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    assert seen > 10
