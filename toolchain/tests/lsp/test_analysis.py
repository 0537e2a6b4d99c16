"""The editor shows what the compiler says, about the text as it is in the editor."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from lsp_session import PROGRAM, Session

from p4native.compiler.backend import emit
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options
from p4native.lsp import analysis
from p4native.lsp.analysis import Analysis, analysed
from p4native.lsp.text import Text
from p4native.verification.editor.edits import Editor

TESTS = Path(__file__).resolve().parents[1]
MISTAKES = sorted(TESTS.glob("compiler/check/[bw]*/*.p4"))


def of_compiler(path: Path) -> list[tuple[int, int, str]]:
    diagnostics = Diagnostics()
    program = compile_file(str(path), Options(), diagnostics)
    if program is not None:
        emit(program, diagnostics)
    return [(d.position.line, d.position.column, d.message) for d in diagnostics.entries]


def of_editor(path: Path, text: str) -> Analysis:
    return analysed(str(path), {str(path): Text(text)}, Options())


@pytest.mark.long(but=["student_while", "student_include_missing", "include_missing"])
@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_the_messages_are_those_of_the_compiler(path: Path) -> None:
    shown = of_editor(path, path.read_text()).diagnostics
    places = [(d.position.line, d.position.column, d.message) for d in shown]
    assert places == of_compiler(path)


def test_a_message_names_the_file_and_not_the_copy_that_was_compiled(session: Session) -> None:
    session.replace("struct metadata_t {", "struct headers_t {")
    (message, *_) = session.messages()
    assert message == f"12: 'headers_t' is already declared at {session.path}:11:8"


def test_a_text_that_is_not_saved_counts_where_it_is_included(tmp_path: Path) -> None:
    """The file between both is not open, and lies beside the one that is."""
    folder = tmp_path.resolve()
    (folder / "parts").mkdir()
    (folder / "parts/outer.p4").write_text('#include "inner.p4"\n')
    inner = folder / "parts/inner.p4"
    inner.write_text("const bit<32> LIMIT = 1;\n")
    session = Session(folder / "prog.p4")
    session.replace("#define SLOTS 1024", '#include "parts/outer.p4"\n#define SLOTS LIMIT')
    assert session.messages() == []
    session.open(inner, "const bit<32> RENAMED = 1;\n")
    assert session.messages()[0].endswith("'LIMIT' is not declared")
    session.workspace.close(str(inner))
    session.analyse()
    assert session.messages() == []


def test_a_mistake_in_an_included_file_is_shown_there(tmp_path: Path) -> None:
    part = tmp_path.resolve() / "part.p4"
    part.write_text("const bit<8> ONE = unknown;\n")
    session = Session(tmp_path.resolve() / "prog.p4")
    session.replace("#define SLOTS", '#include "part.p4"\n#define SLOTS')
    assert session.messages() == []
    assert session.messages(str(part)) == ["1: 'unknown' is not declared"]


def test_a_part_is_checked_as_a_part_of_its_program(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "prog.p4").write_text(
        PROGRAM.replace("#define SLOTS", '#include "parts/a.p4"\n#define SLOTS')
    )
    (folder / "parts").mkdir()
    (folder / "parts/a.p4").write_text('#include "b.p4"\n')
    part = folder / "parts/b.p4"
    part.write_text("")
    session = Session(folder / "other.p4")
    session.open(part, "const bit<9> HERE = unknown;\n")
    assert session.workspace.programs[str(part)] == str(folder / "prog.p4")
    assert session.messages(str(part)) == ["1: 'unknown' is not declared"]


def test_what_follows_a_mistake_of_syntax_is_still_known(session: Session) -> None:
    session.replace("bit<32> before;", "bit<32> before = ;")
    assert [message.split(":")[0] for message in session.messages()] == ["35"]
    assert session.hover("meta.sum = ", "meta.")[0] == "bit<32> sum"
    assert session.hover("state chunk {", "state ")[0] == "state chunk"


def test_places_follow_edits_until_the_next_analysis(session: Session) -> None:
    session.replace("meta.sum = before", "meta.sum = befor")
    assert session.messages() == ["37: 'befor' is not declared"]
    session.replace("#define SLOTS 1024", "#define SLOTS 1024\n\n// two lines more", analyse=False)
    assert session.messages() == ["39: 'befor' is not declared"]
    assert session.hover("sums.read(")[0].startswith("register<bit<32>> sums")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("//" + "x" * (1 << 20), "larger than 1 MB"),
        ("".join(f"#define A{n + 1} A{n} A{n} A{n} A{n}\n" for n in range(13)) + "A13", "4 MB"),
        ("a\0b", "binary data"),
        ("x" + "(" * 3000, ""),
        ('#include "prog.p4"\n', "include each other endlessly"),
        ('#include "/dev/zero"\n', "the preprocessor failed"),
        ("\ud800\U0001f986\r\r\n\u2028", ""),
    ],
    ids=["large", "macros", "binary", "deep", "endless", "device", "characters"],
)
def test_a_hostile_text_gets_a_message(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path.resolve() / "prog.p4"
    shown = of_editor(path, text).diagnostics
    assert shown and any(problem in entry.message for entry in shown), shown


def test_a_file_that_cannot_be_laid_out_gets_a_message(tmp_path: Path) -> None:
    path = tmp_path.resolve() / ("x" * 300) / "prog.p4"
    (entry,) = of_editor(path, PROGRAM).diagnostics
    assert "File name too long" in entry.message


@pytest.mark.long(but=["1"])
@pytest.mark.parametrize("seed", range(1, 40))
def test_no_text_makes_the_analysis_fail(seed: int, tmp_path: Path) -> None:
    """Ten texts for each seed, each some random edits away from a program."""
    path = tmp_path.resolve() / "prog.p4"
    editor = Editor(PROGRAM, seed)
    chance = random.Random(seed)
    failures = 0
    for _ in range(10):
        for _ in range(chance.choice((1, 2, 5, 20))):
            editor.change()
        failures += any(d.level == "error" for d in of_editor(path, editor.content).diagnostics)
        editor.content = PROGRAM
    assert failures, "no edit broke the program"


def test_a_program_that_compiles_has_no_message(session: Session) -> None:
    assert session.messages() == []


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_may_end_otherwise(end: str, session: Session) -> None:
    session.replace("meta.sum = before", "\tmeta.sum = befor")
    session.workspace.edit(session.path, None, session.text.replace("\n", end))
    session.analyse()
    assert session.messages() == ["37: 'befor' is not declared"]
    assert session.hover("\tmeta.sum = ", "meta.")[0] == "bit<32> sum"
    assert "sum" in session.offered("\tmeta.sum = ", "\tmeta.")


def test_no_more_messages_are_shown_than_a_person_reads(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "prog.p4"
    text = "".join(f"const bit<8> C{n} = x{n};\n" for n in range(analysis.MAX_MESSAGES + 9))
    shown = of_editor(path, text).diagnostics
    assert len(shown) == analysis.MAX_MESSAGES and shown[0].position.line == 1
