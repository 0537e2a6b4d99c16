"""Tables that P4's macros have to write out entry by entry are right for every value of their
parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.preprocess import Options, preprocess

INCLUDE = Path(__file__).resolve().parents[3] / "p4" / "include"
WORD_LANES, LANE_BITS, MOST_LANES = 64, 32, 2240
SHOWN = re.compile(r"^=> (.*)$", re.MULTILINE)
WORD = re.compile(r"<(\w+) \(?(\d+)(?: % (\d+) \* (\d+)\))?>")


def expanded(
    folder: Path, header: str, parameter: str, values: Sequence[int], use: str
) -> list[str]:
    """Returns what `use` becomes for each value of the parameter. The header is included anew for
    each of them, in one run of the preprocessor."""
    lines = ["#define NAMED(name, bits) <name bits>", "#define NUMBERED(n) <n>"]
    for value in values:
        lines += [f"#define {parameter} {value}", f'#include "{INCLUDE / header}"', f"=> {use}"]
        lines += [f"#undef {name}" for name in (parameter, *defined(header))]
    source = folder / "all.p4"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    diagnostics = Diagnostics()
    text = preprocess(str(source), Options(), diagnostics)
    assert text is not None, diagnostics.entries
    return SHOWN.findall(text)


def defined(header: str) -> list[str]:
    """Returns the names of the macros that a header defines."""
    text = (INCLUDE / header).read_text(encoding="utf-8")
    return sorted(set(re.findall(r"^#define (\w+)", text, re.MULTILINE)))


def word_bits(text: str) -> list[tuple[str, int]]:
    """Returns the names and widths of the words that an expansion of EACH_WORD(NAMED) has."""
    return [
        (name, int(bits) % int(modulus) * int(factor) if modulus else int(bits))
        for name, bits, modulus, factor in WORD.findall(text)
    ]


def test_words_hold_the_lanes_of_packets_of_every_size(tmp_path: Path) -> None:
    sizes = range(1, MOST_LANES + 1)
    texts = expanded(tmp_path, "lanes.p4", "LANES", sizes, "EACH_WORD(NAMED)")
    assert len(texts) == len(sizes)
    for lanes, text in zip(sizes, texts, strict=True):
        words, rest = divmod(lanes, WORD_LANES)
        expected = [(f"w{i}", WORD_LANES * LANE_BITS) for i in range(words)]
        expected += [("tail", rest * LANE_BITS)] if rest else []
        assert word_bits(text) == expected, lanes


def test_pairs_have_different_names(tmp_path: Path) -> None:
    (text,) = expanded(tmp_path, "pairs.p4", "UNUSED", [0], "PAIRS: EACH_PAIR(NUMBERED)")
    count, names = text.split(":")
    assert len(set(re.findall(r"<\w+>", names))) == len(re.findall(r"<", names)) == int(count)
