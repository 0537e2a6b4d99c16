"""Whatever the input, the front end answers with a program or with diagnostics, never with an
exception: token soup, and good programs with something taken out, doubled or exchanged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import check_text
from p4native.compiler.preprocess import INCLUDE_DIR, Options, preprocess
from p4native.compiler.syntax.lexer import KEYWORDS, tokenize

PACKETS = Path(__file__).resolve().parents[1] / "packets"
SYMBOLS = """( ) [ ] { } < > << + - * / % & | ^ ~ ! = == != <= >= && || ++ |+| ? : ; , . .. ... @
&&& +: {#} += _ a b h_t s x apply.x 0 1 255 8w3 4s7 0xFF 1w1 true "s" @name"""
WORDS = [*sorted(KEYWORDS), *SYMBOLS.split()]
PROGRAMS = sorted(PACKETS.glob("*.p4"))
fast = settings(deadline=None, max_examples=150)


def survives(text: str) -> None:
    diagnostics = Diagnostics()
    program = check_text(text, "fuzz.p4", diagnostics)
    assert (program is None) == diagnostics.failed
    for entry in diagnostics.entries:
        assert entry.message and entry.position.line >= 1
    assert render(diagnostics.entries, {"fuzz.p4": text}) or not diagnostics.entries


@fast
@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_token_soup(words: list[str]) -> None:
    survives(" ".join(words))


@fast
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["apply", "state", "table"]))
def test_token_soup_in_a_block(words: list[str], place: str) -> None:
    inside = " ".join(words)
    before = "header h_t { bit<8> x; } struct s { h_t a; h_t[3] b; } "
    texts = {
        "apply": f"control c(inout s a) {{ apply {{ {inside} }} }}",
        "state": f"parser p(inout s a) {{ state start {{ {inside} }} }}",
        "table": f"control c(inout s a) {{ table t {{ {inside} }} apply {{}} }}",
    }
    survives(before + texts[place])


@fast
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    survives(text)


_preprocessed: dict[Path, list[str]] = {}


def pieces(path: Path) -> list[str]:
    """The tokens of a good program, libraries included."""
    if path not in _preprocessed:
        diagnostics = Diagnostics()
        text = preprocess(str(path), Options(includes=(str(INCLUDE_DIR),)), diagnostics)
        assert text is not None
        tokens = tokenize(text, str(path), diagnostics)
        _preprocessed[path] = [t.text for t in tokens if t.text]
    return _preprocessed[path]


def mutate(tokens: list[str], chance: random.Random) -> list[str]:
    """Up to three small changes behind the libraries."""
    library = next(i for i, t in enumerate(tokens) if t == "V1Switch") + 40
    out = list(tokens)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(library, len(out))
        change = chance.randrange(4)
        if change == 0:
            del out[at]
        elif change == 1:
            out.insert(at, out[chance.randrange(library, len(out))])
        elif change == 2:
            out[at] = chance.choice(WORDS)
        else:
            other = chance.randrange(library, len(out))
            out[at], out[other] = out[other], out[at]
    return out


@pytest.mark.long
@fast
@given(st.sampled_from(PROGRAMS), st.integers(0, 2**32))
def test_mutated_programs(path: Path, seed: int) -> None:
    survives(" ".join(mutate(pieces(path), random.Random(seed))))
