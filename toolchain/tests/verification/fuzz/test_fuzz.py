"""A small part of `python -m p4native.verification fuzz`, and that what it finds is kept."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from p4native.common.exit_codes import FAILED, INVALID, PASSED
from p4native.verification.corpus import TESTS, Corpus
from p4native.verification.fuzz import Subject, Target, command, packets
from p4native.verification.fuzz.attempts import attempt
from p4native.verification.fuzz.inputs import change_json
from p4native.verification.fuzz.packets import send

FEW = {
    "names": 8,
    "annotations": 10,
    "json": 40,
    "p4": 15,
    "stf": 12,
    "p4runtime": 3,
}


@pytest.mark.long(but=["names"])
@pytest.mark.parametrize("kind", command.TARGETS, ids=lambda kind: kind.name)
def test_some_inputs_of_each_kind(kind: type[Target], tmp_path: Path) -> None:
    tried = attempt(kind, Corpus(), 1, range(FEW[kind.name]), tmp_path)
    assert tried.inputs == FEW[kind.name]
    assert not tried.troubles, tried.troubles


class Broken(Target):
    """A kind of input of another project, of which one input in four fails."""

    name = "broken"
    inputs = 30

    def draw(self, rng: random.Random) -> str:
        return str(rng.randrange(4))

    def survive(self, text: str) -> None:
        if text == "2":
            raise KeyError(text)


def test_what_fails_is_saved_with_its_seed(tmp_path: Path) -> None:
    tried = attempt(Broken, Corpus(), 7, range(30), tmp_path)
    assert tried.inputs == 30
    assert 0 < len(tried.troubles) < 30
    saved = sorted(tmp_path.glob("broken-7-*.txt"))
    assert len(saved) == len(tried.troubles)
    assert {path.read_text() for path in saved} == {"2"}
    assert "KeyError" in saved[0].with_suffix(".trace").read_text()


def test_packets_through_a_sanitized_program(tmp_path: Path) -> None:
    script = (TESTS / "stack_parse.stf").read_text()
    subject = Subject("stack_parse", TESTS / "stack_parse.p4", script)
    first = send(subject, tmp_path, 1, 0, 3000)
    assert (first.trouble, first.packets) == ("", 3000)
    assert first.copies > 100
    assert send(subject, tmp_path, 1, 0, 3000) == first  # a function of the seed
    assert send(subject, tmp_path, 2, 0, 3000).digest != first.digest


def test_a_sanitizers_report_names_the_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "packets.c"
    text = packets.DRIVER.read_text()
    broken.write_text(
        text.replace(
            "for (uint32_t i = 0; i < len; i++)", "for (uint32_t i = 0; i <= len + 9000; i++)"
        )
    )
    monkeypatch.setattr(packets, "DRIVER", broken)
    script = (TESTS / "stack_parse.stf").read_text()
    subject = Subject("stack_parse", TESTS / "stack_parse.p4", script)
    sent = send(subject, tmp_path, 1, 0, 3000)
    assert "AddressSanitizer" in sent.trouble
    assert "packet " in sent.trouble and " port " in sent.trouble
    assert (tmp_path / "stack_parse.trouble.txt").exists()


def test_shares_add_up() -> None:
    subjects = [Subject(str(n), Path(), "", share=0 if n else 0.25) for n in range(8)]
    counts = [count for _, count in command.shares(subjects, 1_000_003)]
    assert sum(counts) == 1_000_003
    assert counts[0] == 250_000
    assert max(counts[1:]) - min(counts[1:]) <= 1


def test_kinds_of_another_project_are_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["broken", "--results", str(tmp_path / "out")]
    assert command.main(words, more=[Broken]) == FAILED
    said = capsys.readouterr().out
    assert "broken: 30 inputs, " in said and "KeyError: '2'" in said
    assert list((tmp_path / "out").glob("broken-1-*.txt"))
    assert command.main([*words, "--scale", "0", "--seed", "2"], more=[Broken]) == PASSED
    assert command.main(words) == INVALID, "only who brings the kind has it"
    assert "nothing is called 'broken'; known: packets, names," in capsys.readouterr().err


def test_programs_of_a_folder_are_started_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    words = ["packets", "--packets", "0", "--programs", str(folder)]
    assert command.main(words) == INVALID
    assert f"--programs {folder}: no folder with P4 programs" in capsys.readouterr().err
    copy = folder / "drop.p4"
    copy.write_text("control {")
    assert command.main(words) == INVALID
    assert f"fuzz: does not compile: {copy}:1:9: error: " in capsys.readouterr().err
    text = (TESTS / "drop.p4").read_text()
    copy.write_text(text.replace('"include/', f'"{TESTS}/include/'))
    corpus = Corpus((folder,))
    assert corpus.programs()[-1] == copy and len(corpus.programs()) > 90
    *_, mine, _random = packets.subjects(corpus, tmp_path, range(1, 2))
    assert (mine.name, mine.program, mine.script) == ("drop-1", copy, "")
    copy.with_suffix(".stf").write_text("pakket 1 00\n")
    assert command.main(words) == INVALID
    assert f"fuzz: {copy.with_suffix('.stf')}:1: error: " in capsys.readouterr().err
    copy.with_suffix(".stf").write_text("packet 1 00\n")
    assert corpus.scripts()[-1] == copy.with_suffix(".stf")
    assert corpus.chosen(["multicast"]) == [TESTS / "multicast.p4", copy]


def test_changes_of_json_are_a_function_of_the_seed() -> None:
    def changed(seed: int) -> object:
        document = {"a": [1, 2, {"b": "x"}], "c": True, "source_info": {"line": 3}}
        change_json(random.Random(seed), document)
        return document

    assert changed(1) == changed(1)
    different = [changed(seed) for seed in range(40)]
    assert len({str(d) for d in different}) > 8
    assert all(d["source_info"] == {"line": 3} for d in different)  # type: ignore[index]
