"""Positions in units of UTF-16, edits, and where places are after edits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4native.lsp.text import Place, Span, Text
from p4native.lsp.workspace import Workspace
from p4native.verification.editor.edits import Editor
from p4native.verification.editor.program import program_text

TEXTS = st.text(alphabet="ab\r\n\u2028\f🦆é", max_size=30)


@pytest.mark.parametrize(
    ("place", "index"),
    [
        (Place(0, 0), 0),
        (Place(0, 3), 2),  # behind the duck, which is two units
        (Place(0, 2), 2),  # within it: behind it
        (Place(0, 99), 3),  # beyond the line: at its end
        (Place(1, 0), 5),
        (Place(2, 2), 9),  # a form feed ends no line
        (Place(9, 0), 11),
    ],
)
def test_a_place_is_an_index(place: Place, index: int) -> None:
    assert Text("a🦆b\r\nc\nd\fef").index(place) == index


@given(TEXTS)
def test_every_index_has_a_place(content: str) -> None:
    text = Text(content)
    for index in range(len(content) + 1):
        if content[index - 1 : index + 1] != "\r\n":
            assert text.index(text.place(index)) == index


@given(TEXTS, TEXTS, st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_places_outside_of_an_edit_stay_with_their_text(
    content: str, new: str, one: int, other: int, index: int
) -> None:
    text = Text(content.replace("\r", ""))
    first, last = sorted(min(each, len(text.content)) for each in (one, other))
    later = text.edited(Span(text.place(first), text.place(last)), new.replace("\r", ""))
    index = min(index, len(text.content))
    moved = later.index(text.followed(text.place(index), later))
    if index <= first:
        assert later.content[:moved] == text.content[:index] or moved < index
    assert 0 <= moved <= len(later.content)


def test_a_place_behind_an_edit_moves_with_its_text() -> None:
    before, later = Text("one\ntwo\nthree\n"), Text("one\nnew line\ntwo\nthree\n")
    assert before.followed(Place(2, 1), later) == Place(3, 1)
    assert before.followed(Place(0, 1), later) == Place(0, 1)
    assert later.followed(Place(3, 1), before) == Place(2, 1)


@pytest.mark.parametrize("seed", range(4))
def test_ten_thousand_edits_make_the_text_that_the_editor_has(seed: int, tmp_path: Path) -> None:
    """2,500 edits for each seed. The editor's text is computed in another way."""
    path = str(tmp_path / "prog.p4")
    workspace, editor = Workspace(), Editor(program_text(300), seed)
    workspace.open(path, editor.content)
    for _ in range(2500):
        change = editor.change()
        ends = (
            [Place(**change["range"][end]) for end in ("start", "end")] if "range" in change else []
        )
        workspace.edit(path, Span(*ends) if ends else None, change["text"])
        assert workspace.texts[path].content == editor.content


def test_an_edit_of_a_file_that_is_not_open_is_ignored() -> None:
    workspace = Workspace()
    assert workspace.edit("/nowhere.p4", None, "text") is None
    assert workspace.texts == {}
