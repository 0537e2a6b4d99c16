"""The text of Python's own library as data: counted apart, on whatever Python runs."""

from __future__ import annotations

import keyword
import re
import sysconfig
from collections import Counter
from pathlib import Path

import numpy as np

from agglab.hosts.workloads.library_text import library_text


def test_every_word_of_the_text_is_there_in_its_order() -> None:
    text = library_text()
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    source = "\n".join(path.read_bytes().decode("latin-1") for path in files)
    words = [w for w in re.findall(r"[A-Za-z_]\w*", source, re.ASCII) if not keyword.iskeyword(w)]
    assert [text.vocabulary[number].decode() for number in text.numbers] == words
    assert len(text.vocabulary) == len(set(words)) == text.keys.size == np.unique(text.keys).size


def test_words_are_skewed_as_those_of_language_are() -> None:
    numbers = library_text().numbers
    counts = sorted(Counter(numbers.tolist()).values(), reverse=True)
    assert 0.4 < sum(counts[:256]) / numbers.size < 0.6
    assert 0.75 < sum(counts[:4096]) / numbers.size < 0.95


def test_after_the_last_word_comes_the_first() -> None:
    text = library_text()
    around = text.part(text.numbers.size - 2, 4)
    assert around.tolist() == [*text.numbers[-2:].tolist(), *text.numbers[:2].tolist()]
