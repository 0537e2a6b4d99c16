"""The command line: options, exit status, what is written and what is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from p4native.compiler.backend import emit, show_ir
from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import compile_file
from p4native.compiler.preprocess import Options, preprocess

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """#include <core.p4>
#include <v1model.p4>
#ifndef PORT
#define PORT 1
#endif
header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout headers h, inout meta m) { apply {} }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    apply { s.egress_spec = PORT; }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply {} }
control U(inout headers h, inout meta m) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4native.compiler", *arguments]
    environment = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prog.p4").write_text(PROGRAM)
    return tmp_path


def test_writes_json_and_p4info(folder: Path) -> None:
    done = run(folder, "prog.p4", "-o", "out.json", "--p4runtime-files", "a.txtpb,b.json,c.bin")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((folder / "out.json").read_text())["pipelines"][0]["name"] == "ingress"
    assert (folder / "a.txtpb").read_text().startswith("# proto-file:")
    assert "pkgInfo" in json.loads((folder / "b.json").read_text())
    assert (folder / "c.bin").read_bytes()
    assert {p.name for p in folder.iterdir()} == {
        "prog.p4",
        "out.json",
        "a.txtpb",
        "b.json",
        "c.bin",
    }


def test_a_long_expression_needs_no_preparation_by_the_caller(folder: Path) -> None:
    terms = " + ".join(["s.egress_spec"] * 900)
    (folder / "prog.p4").write_text(PROGRAM.replace("= PORT", f"= {terms}"))
    diagnostics = Diagnostics()
    program = compile_file(str(folder / "prog.p4"), Options(), diagnostics)
    assert program is not None, diagnostics.entries
    assert show_ir(program, diagnostics) is not None
    assert emit(program, diagnostics) is not None


def test_accepts_the_flags_of_p4c(folder: Path) -> None:
    flags = ["--std", "p4-16", "--p4v", "16", "--target", "bmv2", "--arch", "v1model", "-I", "."]
    flags += ["-DPORT=7", "-UNOTHING", "--Werror", "--p4runtime-format", "text"]
    done = run(folder, *flags, "--p4runtime-file", "info", "-o", "out.json", "prog.p4")
    assert (done.returncode, done.stderr) == (0, "")
    assert "0x0007" in (folder / "out.json").read_text()
    assert (folder / "info").read_text().startswith("# proto-file:")


def test_warning_flags_take_no_argument_of_their_own(folder: Path) -> None:
    done = run(folder, "-O", "--Wdisable", "--Wwarn", "--Winfo", "--ndebug", "prog.p4")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("flag", ["--top4=x", "--toJSON", "--p4runtime-entries-files=a.txt"])
def test_refuses_what_it_cannot_mean(folder: Path, flag: str) -> None:
    done = run(folder, flag, "prog.p4")
    assert done.returncode == 2 and "is not supported: " in done.stderr


def test_source_that_is_preprocessed_already(folder: Path) -> None:
    (folder / "plain.p4").write_text(run(folder, "-E", "prog.p4").stdout)
    done = run(folder, "--nocpp", "plain.p4", "-o", "out.json")
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "macro.p4").write_text("#define A 1\nconst bit<8> k = A;\n")
    assert run(folder, "--nocpp", "macro.p4", "--show", "types").returncode == 1


def test_json_in_a_folder_has_the_programs_name(folder: Path) -> None:
    (folder / "build").mkdir()
    assert run(folder, "prog.p4", "-o", "build").returncode == 0
    assert run(folder, "prog.p4", "-o", "build/").returncode == 0
    assert [p.name for p in (folder / "build").iterdir()] == ["prog.json"]


def test_rules_for_make(folder: Path) -> None:
    done = run(folder, "-M", "-MT", "out.json", "prog.p4")
    assert done.returncode == 0 and done.stdout.startswith("out.json: prog.p4")
    done = run(folder, "-MD", "-MF", "prog.d", "-Wundef", "-o", "out.json", "prog.p4")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "core.p4" in (folder / "prog.d").read_text() and (folder / "out.json").exists()


def test_externs_of_modules(folder: Path) -> None:
    own = "extern Acc { Acc(bit<32> n, string name); void add(in bit<8> v, out bit<8> sum); }\n"
    own += "extern void twist<T>(in T given, inout bit<8> x, string how);\n"
    text = PROGRAM.replace("control I(", own + "control I(").replace(
        "apply { s.egress_spec = PORT; }",
        """Acc(32, "sums") acc;
        apply { s.egress_spec = PORT; acc.add(h.h.a + 1, h.h.a); twist(h.h, h.h.a, "left"); }""",
    )
    (folder / "prog.p4").write_text(text)
    refused = run(folder, "prog.p4", "-o", "out.json")
    assert refused.returncode == 1 and "--emit-externs" in refused.stderr
    done = run(folder, "--emit-externs", "prog.p4", "-o", "out.json", "--p4runtime-files", "a.txt")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads((folder / "out.json").read_text())
    (instance,) = document["extern_instances"]
    assert (instance["name"], instance["type"]) == ("I.acc", "Acc")
    assert instance["attribute_values"] == [
        {"name": "n", "type": "hexstr", "value": "0x20"},
        {"name": "name", "type": "string", "value": "sums"},
    ]
    calls = {p["op"]: p["parameters"] for a in document["actions"] for p in a["primitives"]}
    field = {"type": "field", "value": ["h", "a"]}
    assert calls["_Acc_add"][0] == {"type": "extern", "value": "I.acc"}
    assert [calls["_Acc_add"][1]["type"], calls["_Acc_add"][2]] == ["expression", field]
    left = {"type": "string", "value": "left"}
    assert calls["twist"] == [{"type": "header", "value": "h"}, field, left]


def test_macros_that_multiply(folder: Path) -> None:
    (folder / "prog.p4").write_text("#define A B B B B\n#define B C C C C\n" + "A\n" * 1000)
    diagnostics = Diagnostics()
    path = str(folder / "prog.p4")
    assert preprocess(path, Options(), diagnostics, max_bytes=10_000) is None
    assert "preprocessing takes more than" in diagnostics.entries[0].message


def test_a_program_is_a_regular_file(folder: Path) -> None:
    os.mkfifo(folder / "pipe.p4")
    for name in ("pipe.p4", "/dev/zero"):
        done = run(folder, name)
        assert done.returncode == 1
        assert f"{name}: is not a regular file" in done.stderr


def test_a_line_marker_makes_nobody_read_a_device(folder: Path) -> None:
    """The text of a marker's file is read to show the line of an error."""
    (folder / "bad.p4").write_text('# 1 "/dev/zero"\nconst bit<8> k = x;\n')
    done = run(folder, "bad.p4")
    assert done.returncode == 1
    assert "/dev/zero:1:18: error:" in done.stderr


def test_an_included_device_does_not_fill_the_memory(folder: Path) -> None:
    (folder / "bad.p4").write_text('#include "/dev/zero"\n')
    done = run(folder, "bad.p4")
    assert done.returncode == 1
    assert "the preprocessor failed" in done.stderr and "1 GB of memory" in done.stderr


def test_number_of_errors_shown(folder: Path) -> None:
    (folder / "bad.p4").write_text("".join(f"const bit<8> k{i} = x{i};\n" for i in range(9)))
    done = run(folder, "--maxErrorCount", "3", "bad.p4")
    assert done.stderr.count(" error: ") == 3 and done.stderr.endswith("9 errors\n")


@pytest.mark.parametrize(
    ("stage", "piece"),
    [
        ("preprocessed", "s.egress_spec = 1;"),
        ("tokens", "prog.p4:19:1: identifier V1Switch"),
        ("ast", "ParserState name='start'"),
        ("types", "I: I ()"),
        ("json", '"program"'),
    ],
)
def test_show(folder: Path, stage: str, piece: str) -> None:
    done = run(folder, "prog.p4", "--show", stage)
    assert (done.returncode, done.stderr) == (0, "")
    assert piece in done.stdout


def test_preprocess_only(folder: Path) -> None:
    done = run(folder, "prog.p4", "-E", "-DPORT=9")
    assert done.returncode == 0 and "s.egress_spec = 9;" in done.stdout


def test_a_reader_that_stops_early_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m p4native.compiler prog.p4 --show tokens | head -1"
    environment = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.stderr == ""


def test_errors_leave_no_file_and_exit_1(folder: Path) -> None:
    (folder / "bad.p4").write_text(PROGRAM.replace("egress_spec = PORT", "egress_spek = PORT"))
    done = run(folder, "bad.p4", "-o", "out.json", "--p4runtime-files", "a.txtpb")
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.p4:14:15: error: standard_metadata_t has no member 'egress_spek'" in done.stderr
    assert "Traceback" not in done.stderr
    assert {p.name for p in folder.iterdir()} == {"prog.p4", "bad.p4"}


@pytest.mark.long(
    but=[
        "arguments0-1-missing.p4: No such file or directory",
        "arguments9-2-unrecognized",
        "arguments5-2-P4_14",
        "arguments7-2-psa",
    ]
)
@pytest.mark.parametrize(
    ("arguments", "status", "piece"),
    [
        (["missing.p4"], 1, "missing.p4: No such file or directory"),
        (["."], 1, "is a folder"),
        (["prog.p4", "-o", "no/such/folder/x.json"], 1, "cannot write no/such/folder/x.json"),
        ([], 2, "required: program"),
        (["prog.p4", "--std", "p4-14"], 2, "P4_14"),
        (["prog.p4", "--p4v", "14"], 2, "P4_14"),
        (["prog.p4", "--p4runtime-files", "x.yaml"], 2, ".txtpb"),
        (["prog.p4", "--arch", "psa"], 2, "psa"),
        (["prog.p4", "--show", "nothing"], 2, "invalid choice"),
        (["prog.p4", "--no-such-flag"], 2, "unrecognized"),
    ],
)
def test_wrong_use(folder: Path, arguments: list[str], status: int, piece: str) -> None:
    done = run(folder, *arguments)
    assert done.returncode == status and piece in done.stderr
    assert "Traceback" not in done.stderr


def test_version(folder: Path) -> None:
    done = run(folder, "--version")
    assert done.returncode == 0 and done.stdout.startswith("p4native-c ")


def test_binary_and_strange_files(folder: Path) -> None:
    (folder / "binary.p4").write_bytes(bytes(range(256)))
    (folder / "latin.p4").write_bytes(b"// \xe9\xe8\nconst bit<8> k = \xe9;\n")
    (folder / "empty.p4").write_bytes(b"")
    for name, piece in (("binary.p4", "binary data"), ("latin.p4", "latin.p4:2:18")):
        done = run(folder, name, "--show", "ast")
        assert done.returncode == 1 and piece in done.stderr
    assert run(folder, "empty.p4", "--show", "ast").returncode == 0


def test_werror_and_wdisable(folder: Path) -> None:
    (folder / "warn.p4").write_text('@noWarn("unused") const bit<8> k = 300;\n')
    plain = run(folder, "warn.p4", "--show", "types")
    assert plain.returncode == 0 and "warning: 300 does not fit" in plain.stderr
    for flag in ("--Werror", "--Werror=overflow"):
        strict = run(folder, "--show", "types", flag, "--", "warn.p4")
        assert strict.returncode == 1 and "error: 300 does not fit" in strict.stderr
    for flag in ("--Wdisable", "--Wdisable=overflow"):
        silent = run(folder, "--show", "types", flag, "--", "warn.p4")
        assert (silent.returncode, silent.stderr) == (0, "")


def test_includes_are_searched_in_order(folder: Path) -> None:
    for name, value in (("first", 1), ("second", 2)):
        (folder / name).mkdir()
        (folder / name / "value.p4").write_text(f"const bit<8> k = {value};\n")
    (folder / "main.p4").write_text("#include <value.p4>\n")
    diagnostics = Diagnostics()
    text = preprocess(
        str(folder / "main.p4"),
        Options(includes=(str(folder / "second"), str(folder / "first"))),
        diagnostics,
    )
    assert text is not None and "k = 2" in text


def test_a_users_own_core_p4_comes_before_the_compilers(folder: Path) -> None:
    (folder / "core.p4").write_text("const bit<8> MINE = 1;\n")
    (folder / "main.p4").write_text("#include <core.p4>\n")
    found = []
    for includes in ((), (str(folder),)):
        text = preprocess(str(folder / "main.p4"), Options(includes=includes), Diagnostics())
        assert text is not None
        found.append("MINE" in text)
    assert found == [False, True]


def test_environment_does_not_leak_into_the_preprocessor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "inc").mkdir()
    (folder / "inc" / "value.p4").write_text("")
    (folder / "main.p4").write_text("#include <value.p4>\n")
    monkeypatch.setenv("CPATH", str(folder / "inc"))
    diagnostics = Diagnostics()
    assert preprocess(str(folder / "main.p4"), Options(), diagnostics) is None
    assert "include file value.p4 not found" in diagnostics.entries[0].message


def test_without_a_c_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    diagnostics = Diagnostics()
    assert preprocess(str(folder / "prog.p4"), Options(), diagnostics) is None
    assert "apt-get install" in diagnostics.entries[0].hint


def test_long_lines_are_cropped_around_the_caret() -> None:
    diagnostics = Diagnostics()
    from p4native.compiler.frontend import parse_text

    text = "const int k = " + "1 + " * 200 + "; const int j = 2;"
    parse_text(text, "long.p4", diagnostics)
    message, line, caret = render(diagnostics.entries, {"long.p4": text}).rstrip("\n").split("\n")
    assert message.startswith("long.p4:1:815: error")
    assert len(line) < 180 and line[caret.index("^")] == ";"


def test_carets_keep_tabs() -> None:
    diagnostics = Diagnostics()
    from p4native.compiler.frontend import parse_text

    text = "const int\tk\t= ;"
    parse_text(text, "tabs.p4", diagnostics)
    assert "\n         \t \t  ^\n" in render(diagnostics.entries, {"tabs.p4": text})


@pytest.mark.parametrize("count", ["0", "-1", "", "x", "1000001"])
def test_what_is_no_number_of_errors_is_a_wrong_command_line(folder: Path, count: str) -> None:
    done = run(folder, f"--maxErrorCount={count}", "bad.p4")
    assert done.returncode == 2
    assert f"--maxErrorCount: {count!r} is not a number of errors" in done.stderr
