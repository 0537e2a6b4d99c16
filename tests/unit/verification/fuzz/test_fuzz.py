"""A small part of `python -m agglab.verification fuzz`, and that what it finds is kept."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agglab.verification.fuzz import command
from agglab.verification.fuzz.inputs import Target, change_json
from agglab.verification.fuzz.packets import Subject, send

PACKETS = Path(__file__).resolve().parents[3] / "packets"
FEW = {
    "names": 8,
    "annotations": 10,
    "json": 40,
    "p4": 15,
    "stf": 12,
    "scenario": 25,
    "p4runtime": 3,
    "foreign": 2,
}


@pytest.mark.long(but=["names"])
@pytest.mark.parametrize("kind", command.TARGETS)
def test_some_inputs_of_each_kind(kind: str, tmp_path: Path) -> None:
    found = command.attempt(kind, 1, range(FEW.get(kind, 100)), tmp_path)
    assert not found.troubles, found.troubles


def test_what_fails_is_saved_with_its_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Target):
        name = "broken"

        def draw(self, rng: random.Random) -> str:
            return str(rng.randrange(4))

        def survive(self, text: str) -> None:
            if text == "2":
                raise KeyError(text)

    monkeypatch.setitem(command.TARGETS, "broken", Broken)
    found = command.attempt("broken", 7, range(30), tmp_path)
    assert found.inputs == 30
    assert 0 < len(found.troubles) < 30
    saved = sorted(tmp_path.glob("broken-7-*.txt"))
    assert len(saved) == len(found.troubles)
    assert {path.read_text() for path in saved} == {"2"}
    assert "KeyError" in saved[0].with_suffix(".trace").read_text()


def test_packets_through_a_sanitized_program(tmp_path: Path) -> None:
    script = (PACKETS / "stack_parse.stf").read_text()
    subject = Subject("stack_parse", PACKETS / "stack_parse.p4", script)
    first = send(subject, tmp_path, 1, 0, 3000)
    assert (first.trouble, first.packets) == ("", 3000)
    assert first.copies > 100
    assert send(subject, tmp_path, 1, 0, 3000) == first  # a function of the seed
    assert send(subject, tmp_path, 2, 0, 3000).digest != first.digest


def test_a_sanitizers_report_names_the_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agglab.verification.fuzz import packets

    broken = tmp_path / "packets.c"
    text = packets.DRIVER.read_text()
    broken.write_text(
        text.replace(
            "for (uint32_t i = 0; i < len; i++)", "for (uint32_t i = 0; i <= len + 9000; i++)"
        )
    )
    monkeypatch.setattr(packets, "DRIVER", broken)
    script = (PACKETS / "stack_parse.stf").read_text()
    subject = Subject("stack_parse", PACKETS / "stack_parse.p4", script)
    sent = send(subject, tmp_path, 1, 0, 3000)
    assert "AddressSanitizer" in sent.trouble
    assert "packet " in sent.trouble and " port " in sent.trouble
    assert (tmp_path / "stack_parse.trouble.txt").exists()


def test_shares_add_up() -> None:
    subjects = [Subject(str(n), Path(), "") for n in range(8)]
    counts = [count for _, count in command.shares(subjects, 1_000_003)]
    assert sum(counts) == 1_000_003
    assert counts[0] == 250_000


def test_changes_of_json_are_a_function_of_the_seed() -> None:
    def changed(seed: int) -> object:
        document = {"a": [1, 2, {"b": "x"}], "c": True, "source_info": {"line": 3}}
        change_json(random.Random(seed), document)
        return document

    assert changed(1) == changed(1)
    different = [changed(seed) for seed in range(40)]
    assert len({str(d) for d in different}) > 8
    assert all(d["source_info"] == {"line": 3} for d in different)  # type: ignore[index]
