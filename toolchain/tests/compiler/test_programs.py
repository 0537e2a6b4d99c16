"""Whole programs: those of the packet tests pass, and the pieces of v1model are what BMv2 has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from p4native.compiler import ast
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests/packets").glob("*.p4"))


def messages(path: Path) -> list[str]:
    diagnostics = Diagnostics()
    program = compile_file(str(path), Options(), diagnostics)
    assert program is None or program.main is not None
    return [f"{d.position}: {d.message}" for d in diagnostics.entries if d.level == "error"]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_our_programs_have_no_errors(path: Path) -> None:
    assert messages(path) == []


def include(name: str, *defines: str) -> Any:
    diagnostics = Diagnostics()
    path = str(ROOT / "p4native/compiler/include" / name)
    program = compile_file(path, Options(defines=defines), diagnostics)
    assert program is not None and not diagnostics.entries
    return program


def test_standard_metadata() -> None:
    """Names, widths and BMv2 aliases of the fields that a v1model program may use."""
    program = include("v1model.p4")
    struct = next(d for d in program.tree.declarations if d.name == "standard_metadata_t")
    widths = [(f.name, str(program.type_of_declaration[f])) for f in struct.fields]
    assert widths == [
        ("ingress_port", "bit<9>"),
        ("egress_spec", "bit<9>"),
        ("egress_port", "bit<9>"),
        ("instance_type", "bit<32>"),
        ("packet_length", "bit<32>"),
        ("enq_timestamp", "bit<32>"),
        ("enq_qdepth", "bit<19>"),
        ("deq_timedelta", "bit<32>"),
        ("deq_qdepth", "bit<19>"),
        ("ingress_global_timestamp", "bit<48>"),
        ("egress_global_timestamp", "bit<48>"),
        ("mcast_grp", "bit<16>"),
        ("egress_rid", "bit<16>"),
        ("checksum_error", "bit<1>"),
        ("parser_error", "error"),
        ("priority", "bit<3>"),
    ]
    aliases = [
        f.annotation("alias").arguments[0].value for f in struct.fields if f.annotation("alias")
    ]
    assert len(aliases) == 9 and "intrinsic_metadata.mcast_grp" in aliases


EXTERNS = """counter direct_counter meter direct_meter register action_profile random digest
mark_to_drop hash action_selector Checksum16 verify_checksum update_checksum
verify_checksum_with_payload
update_checksum_with_payload clone clone_preserving_field_list clone3 resubmit
resubmit_preserving_field_list recirculate recirculate_preserving_field_list truncate assert assume
log_msg V1Switch Parser VerifyChecksum Ingress Egress ComputeChecksum Deparser __v1model_version
CounterType MeterType HashAlgorithm CloneType packet_in packet_out verify static_assert NoAction"""


@pytest.mark.parametrize("version", ["20180101", "20200408"])
def test_everything_is_declared(version: str) -> None:
    program = include("v1model.p4", f"V1MODEL_VERSION={version}")
    declared = {d.name for d in program.tree.declarations}
    assert set(EXTERNS.split()) <= declared
    kinds = ["exact", "ternary", "lpm", "range", "optional", "selector"]
    assert list(program.match_kinds) == kinds
    codes = [m.name for m in program.error_codes]
    assert codes == [
        "NoError",
        "PacketTooShort",
        "NoMatch",
        "StackOutOfBounds",
        "HeaderTooShort",
        "ParserTimeout",
        "ParserInvalidArgument",
    ]
    register = next(d for d in program.tree.declarations if d.name == "register")
    assert isinstance(register, ast.ExternDeclaration)
    assert len(register.type_parameters) == (1 if version == "20180101" else 2)


def test_unknown_version_is_refused() -> None:
    diagnostics = Diagnostics()
    path = str(ROOT / "p4native/compiler/include/v1model.p4")
    assert compile_file(path, Options(defines=("V1MODEL_VERSION=20000101",)), diagnostics) is None
    assert "20200408" in diagnostics.entries[0].message


def test_a_program_can_tell_what_is_included(check: Callable[[str], Any]) -> None:
    """Programs test these macros before they include the libraries themselves."""
    for name, macro in (("core.p4", "_CORE_P4_"), ("v1model.p4", "_V1_MODEL_P4_")):
        assert f"#define {macro}" in (ROOT / "p4native/compiler/include" / name).read_text()
