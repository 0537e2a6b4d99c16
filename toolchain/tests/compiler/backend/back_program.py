"""Small v1model programs for the tests of the back end: a frame of text and its compilation."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from p4native.compiler.backend import emit
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options

FRAME = """#include <core.p4>
#include <v1model.p4>
%(types)s
header h_t { %(fields)s }
struct headers_t { h_t h; %(headers)s }
struct meta_t { %(meta)s }
%(top)s
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    %(parser)s
}
control V(inout headers_t hdr, inout meta_t meta) { apply { %(verify)s } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    %(locals)s
    apply { %(apply)s }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    %(egress_locals)s
    apply { %(egress)s }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { %(update)s } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); %(deparser)s } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
DEFAULTS = {
    "types": "",
    "fields": "bit<8> a; bit<8> b; bit<16> c;",
    "headers": "",
    "meta": "bit<8> m;",
    "top": "",
    "parser": "state start { packet.extract(hdr.h); transition accept; }",
    "verify": "",
    "locals": "",
    "apply": "",
    "egress_locals": "",
    "egress": "",
    "update": "",
    "deparser": "",
}


def program_text(**parts: str) -> str:
    assert parts.keys() <= DEFAULTS.keys(), parts.keys() - DEFAULTS.keys()
    return FRAME % {**DEFAULTS, **parts}


@lru_cache(maxsize=256)
def compile_text(text: str) -> tuple[dict[str, Any] | None, Any, tuple[str, ...]]:
    """(JSON, P4Info, errors as `line:column: message`)."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "prog.p4"
        path.write_text(text)
        return compile_path(path)


def compile_path(path: Path) -> tuple[dict[str, Any] | None, Any, tuple[str, ...]]:
    diagnostics = Diagnostics()
    typed = compile_file(str(path), Options(), diagnostics)
    assert typed is not None, diagnostics.entries
    emitted = emit(typed, diagnostics)
    errors = tuple(
        f"{e.position.line}:{e.position.column}: {e.message}"
        for e in diagnostics.entries
        if e.level == "error"
    )
    return (None, None, errors) if emitted is None else (*emitted, errors)


def json_of(**parts: str) -> dict[str, Any]:
    document, _, errors = compile_text(program_text(**parts))
    assert document is not None, errors
    return document


def p4info_of(**parts: str) -> Any:
    _, info, errors = compile_text(program_text(**parts))
    assert info is not None, errors
    return info


def errors_of(**parts: str) -> list[str]:
    """Messages without their positions."""
    _, _, errors = compile_text(program_text(**parts))
    return [e.split(": ", 1)[1] for e in errors]


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = [item for item in items if item["name"] == name]
    return found


def without_sources(value: Any) -> Any:
    """JSON without source_info, which says where things stood in the file."""
    if isinstance(value, dict):
        return {k: without_sources(v) for k, v in value.items() if k != "source_info"}
    return [without_sources(v) for v in value] if isinstance(value, list) else value


def ingress(document: dict[str, Any]) -> dict[str, Any]:
    return named(document["pipelines"], "ingress")


def primitives(document: dict[str, Any], action: str) -> list[tuple[str, list[Any]]]:
    found = named(document["actions"], action)
    return [(p["op"], [q.get("value") for q in p["parameters"]]) for p in found["primitives"]]


def only_call(document: dict[str, Any]) -> list[str]:
    """The primitives' names of the one action that the apply block became."""
    (table,) = ingress(document)["tables"]
    (action,) = table["actions"]
    return [op for op, _ in primitives(document, action)]
