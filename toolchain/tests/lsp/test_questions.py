"""Hover, definition and completion, for what students ask about."""

from __future__ import annotations

import pytest
from lsp_session import Session

from p4native.compiler.preprocess import INCLUDE_DIR

FIELD = "It has 16 bits (2 bytes). It belongs to the header chunk_t, at bit 0."


@pytest.mark.parametrize(
    ("text", "after", "code", "sentences"),
    [
        ("hdr.chunks[0].slot);\n        meta", "[0].", "bit<16> slot", FIELD),
        (
            "bit<32> value;",
            "bit<32> ",
            "bit<32> value",
            "It has 32 bits (4 bytes). It belongs to the header chunk_t, at bit 24.",
        ),
        ("chunk_t[2] chunks;", "] ", "chunk_t[2] chunks", "It has 112 bits (14 bytes)."),
        ("meta.sum = ", "meta.", "bit<32> sum", "It belongs to the struct metadata_t."),
        ("{ TYPE:", "{ ", "const bit<16> TYPE", "Its value is 34997, in hexadecimal 0x88b5."),
        ("VALUES = 3", "", "Kind VALUES", "Its value is 3, in hexadecimal 0x3."),
        ("sums.read(", "sums.", "void read(out bit<32> result, in bit<32> index)", ""),
        ("sums.read(", "", "register<bit<32>> sums", ""),
        ("ports.apply", "", "table ports  // keys: exact; actions: forward, NoAction", ""),
        ("{ forward; NoAction", "{ ", "action forward(bit<9> port)", ""),
        ("bit<32>>(SLOTS)", "(", "#define SLOTS 1024", ""),
        ("TYPE: chunk", "TYPE: ", "state chunk", ""),
        ("Sum(), Pass", "", "control Sum(inout headers_t hdr, inout metadata_t meta, ", ""),
        ("packet.emit", "packet.", "void emit(in headers_t hdr)", ""),
        ("= before +", "= ", "bit<32> before", "It has 32 bits (4 bytes)."),
        ("SLOTS 1024", "", "#define SLOTS 1024", ""),
    ],
)
def test_hover(session: Session, text: str, after: str, code: str, sentences: str) -> None:
    shown = session.hover(text, after)
    assert shown[0].startswith(code), shown
    assert sentences in shown[1]


def test_hover_shows_the_comment_above_a_declaration(session: Session) -> None:
    code, sentences = session.hover("chunk_t[2]")
    assert code.split("\n")[1] == "    bit<16> slot;"
    assert sentences.endswith("A chunk of a gradient.\nSlots are numbered from 0.")


@pytest.mark.parametrize("text", ["// A chunk", "{ return", "1024\n"])
def test_nothing_is_known_of_what_is_no_name(session: Session, text: str) -> None:
    session.replace("apply {\n        bit<32>", "apply { return;\n        bit<32>")
    assert session.hover(text) == ("", "")
    assert session.declared(text) == ""


@pytest.mark.parametrize(
    ("text", "after", "line"),
    [
        ("hdr.chunks[0].slot);\n        meta", "[0].", "slot; Kind kind; bit<32> value; }"),
        ("hdr.chunks.next", "", "hdr, inout metadata_t meta,"),
        ("{ TYPE:", "{ ", "TYPE = 0x88b5;"),
        ("TYPE: chunk", "TYPE: ", "chunk {"),
        ("Sum(), Pass", "", "Sum(inout headers_t hdr, inout metadata_t meta,"),
        ("ports.apply", "", "ports {"),
        ("meta.sum = before", "= ", "before;"),
        ("bit<32>>(SLOTS)", "(", "SLOTS 1024"),
        ("sums.read", "sums.", "read(out T result, in V1MODEL_INDEX index);"),
        ("#include <v1model", "<", "/* The v1model"),
    ],
)
def test_definition(session: Session, text: str, after: str, line: str) -> None:
    declared = session.declared(text, after)
    assert declared.startswith(line), declared


def test_the_libraries_are_files_that_an_editor_can_open(session: Session) -> None:
    target = session.workspace.definition(session.path, session.place("packet.emit", "packet."))
    assert target is not None and target.path == str(INCLUDE_DIR / "core.p4")


HERE = "ports.apply();"


@pytest.mark.parametrize(
    ("typed", "some"),
    [
        ("hdr.", {"ethernet": "ethernet_t ethernet", "chunks": "chunk_t[2] chunks"}),
        ("meta.s", {"sum": "bit<32> sum"}),
        ("hdr.chunks[0].", {"slot": "bit<16> slot", "isValid": "bool isValid()"}),
        ("hdr.chunks[meta.sum].", {"value": "bit<32> value"}),
        (
            "standard_metadata.",
            {"egress_spec": "bit<9> egress_spec", "mcast_grp": "bit<16> mcast_grp"},
        ),
        ("sums.", {"read": "void read(out bit<32> result, in bit<32> index)"}),
        ("ports.", {"apply": "apply_result apply()  // of table ports"}),
        ("ports.apply().", {"hit": "bool hit", "miss": "bool miss"}),
        ("meta.sum = (bit<32>) hdr . ethernet .", {"type": "bit<16> type"}),
        ("Kind.", {"VALUES": "Kind.VALUES", "RESULT": "Kind.RESULT"}),
        ("error.", {"NoMatch": "error.NoMatch"}),
        ("hdr.chunks.", {"next": "chunk_t next  // in parsers only", "size": "int size = 2"}),
        (
            "",
            {
                "before": "bit<32> before",
                "hdr": "inout headers_t hdr",
                "forward": "action forward(bit<9> port)",
            },
        ),
        (
            "mark",
            {"mark_to_drop": "void mark_to_drop(inout standard_metadata_t standard_metadata)"},
        ),
    ],
)
@pytest.mark.parametrize("analysed", [True, False], ids=["analysed", "at once"])
def test_completion(session: Session, typed: str, some: dict[str, str], analysed: bool) -> None:
    """The name is not finished, so that the text cannot be parsed."""
    session.replace(HERE, f"{typed}@@\n        ports.apply();", analysed)
    offered = session.offered(f"{typed}@@", typed)
    assert {label: offered.get(label) for label in some} == some


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        ("transition accept;", "transition @@", {"start", "chunk", "accept", "reject", "select"}),
        ("default: accept;", "default: @@", {"start", "chunk", "accept", "reject", "select"}),
        (
            "type: exact;",
            "type: @@",
            {"exact", "ternary", "lpm", "range", "optional", "selector"},
        ),
    ],
)
def test_only_what_fits_is_offered(session: Session, old: str, new: str, labels: set[str]) -> None:
    session.replace(old, new)
    assert {*session.offered(new, new.removesuffix("@@"))} == labels


@pytest.mark.parametrize(
    "typed", ["// hdr.", 'log_msg("hdr.', "nothing.", "meta.sum.", "hdr.none."]
)
def test_nothing_is_offered_where_nothing_fits(session: Session, typed: str) -> None:
    session.replace(HERE, f"{typed}@@\n        ports.apply();")
    assert session.offered(f"{typed}@@", typed) == {}


def test_a_local_of_another_block_is_not_offered(session: Session) -> None:
    session.replace("packet.extract(hdr.chunks.next);", "@@")
    assert not {"before", "sums", "ports"} & {*session.offered("@@", "@@")}


def test_the_last_text_that_could_be_parsed_answers(session: Session) -> None:
    """With a wrong sign in its head, the control is passed over, and its names still are known."""
    session.replace("bit<32> before;", "sums.@@\n        bit<32> before;", analyse=False)
    session.replace("control Sum(inout", "control Sum((inout")
    latest = session.workspace.latest[session.path]
    assert latest.program is not None and not latest.understood
    assert "Sum" not in [declaration.name for declaration in latest.program.tree.declarations]
    assert "read" in session.offered("sums.@@", "sums.")
