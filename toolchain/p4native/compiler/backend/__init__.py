"""The back end, which turns typed P4_16 (v1model) into BMv2 JSON and P4Info.

The stages are: lower (storage, expressions, statements, tables, parsers, checks) -> ir -> graph ->
assemble -> json_output. p4info reads the typed program and the tables that lowering found.
"""

from __future__ import annotations

from typing import Any

from p4native.compiler.backend.json_output import Writer
from p4native.compiler.backend.lower import lower
from p4native.compiler.backend.show import program_text
from p4native.compiler.backend.sources import lines_of
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.frontend import with_deep_stack
from p4native.compiler.typed import TypedProgram


def emit(
    program: TypedProgram, diagnostics: Diagnostics, emit_externs: bool = False
) -> tuple[dict[str, Any], Any] | None:
    """Returns (BMv2 JSON, p4.config.v1.P4Info), or None after errors, which are in diagnostics.

    emit_externs: whether extern functions and objects that v1model does not declare are left to
    modules that BMv2 loads.
    """
    return with_deep_stack(lambda: _emit(program, diagnostics, emit_externs))


def _emit(
    program: TypedProgram, diagnostics: Diagnostics, emit_externs: bool
) -> tuple[dict[str, Any], Any] | None:
    from p4native.compiler.backend.p4info import p4info

    lines_of.cache_clear()
    work = lower(program, diagnostics, emit_externs)
    if work is None:
        return None
    document = Writer(work.unit.program, lines_of).document()
    info = p4info(program, work)
    return None if diagnostics.failed else (document, info)


def show_ir(
    program: TypedProgram, diagnostics: Diagnostics, emit_externs: bool = False
) -> str | None:
    """Returns the program after lowering as text, or None after errors."""
    return with_deep_stack(lambda: _show_ir(program, diagnostics, emit_externs))


def _show_ir(program: TypedProgram, diagnostics: Diagnostics, emit_externs: bool) -> str | None:
    work = lower(program, diagnostics, emit_externs)
    return None if work is None else program_text(work.unit.program)


__all__ = ["emit", "show_ir"]
