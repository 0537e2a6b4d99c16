"""Every command line of the documents can be tried, and reviewed.py names no others."""

from __future__ import annotations

import re
from itertools import combinations

from pages import ROOT, commands, shown
from reviewed import FILLED_IN, FOLLOWED
from trials import NAMED, filled_in, is_ours, stand_in, trials

TEXTS = {each.text for each in shown()}
CHECKED_OUT = re.compile(
    r"(?<![\w/])(?:docs|figures|p4|scenarios|testbed|tests|toolchain|topologies)/[\w./-]+"
)
EXTRA = re.compile(r"'\.\[(\w+)\]'")


def test_every_command_of_another_program_is_reviewed() -> None:
    known = frozenset().union(*NAMED)
    new = [str(each) for each in shown() if not is_ours(each.text) and each.text not in known]
    assert not new, "say in tests/documents/reviewed.py what a test does with these commands"


def test_every_review_is_of_one_command_in_the_documents() -> None:
    assert [text for texts in NAMED for text in texts if text not in TEXTS] == []
    assert [first & second for first, second in combinations(NAMED, 2) if first & second] == []


def test_every_placeholder_stands_in_the_documents() -> None:
    assert [each for each in FILLED_IN if not any(each in text for text in TEXTS)] == []


def test_no_line_that_is_run_has_a_placeholder() -> None:
    left = re.compile(r"<\w+>|\.\.\.|(?<!\$)\b(?:DIR|FILE|PACK|RUN|SHARE|TEST)\b(?!=)")
    assert [each.line for each in trials(is_long=True) if left.search(each.line)] == []


def test_a_page_that_another_test_follows_has_that_test() -> None:
    assert FOLLOWED and all((ROOT / test).is_file() for test in FOLLOWED)


def test_files_and_extras_that_commands_name_exist() -> None:
    followed = frozenset().union(*FOLLOWED.values())
    for each in shown():
        paths = [] if each.text in followed else CHECKED_OUT.findall(each.text)
        assert [path for path in paths if not (each.home / path).exists()] == [], each
        declared = (each.home / "pyproject.toml").read_text()
        assert [n for n in EXTRA.findall(each.text) if f"\n{n} = " not in declared] == [], each


def test_a_stand_in_checks_what_can_be_checked() -> None:
    texts = (
        "make scenario NAME=baselines TARGET=bmv2",
        "AGGLAB_MACHINE=1 make test TESTS=tests/machine",
        "./agglab run baselines --set seed=2",
        "./agglab run FILE [--resume DIR]",
        "pytest --agglab-results DIR",
    )
    assert [(each.line, each.mentioned) for text in texts for each in stand_in(text)] == [
        ("make check NAME=baselines TARGET=bmv2", set()),
        ("make -n test TESTS=tests/machine", set()),
        ("./agglab check baselines --set seed=2", set()),
        ("./agglab run --help", {"--resume"}),
        (".venv/bin/python -m pytest --help", {"--agglab-results"}),
    ]


def test_make_test_runs_what_the_readme_shows_as_root() -> None:
    short = {each.line: each.user for each in trials(is_long=False) if not each.is_long}
    assert short["make scenario NAME=quickstart"] == "root"
    assert "./agglab run --help" in short and "./agglab calibrate --help" not in short
    assert {*short.values()} == {"root"}


def test_optional_parts_are_filled_in() -> None:
    assert filled_in("./agglab compare A B [--json]") == "./agglab compare $A $B --json"


def test_commands_are_seen_wherever_they_stand() -> None:
    page = """Call `agglab gone now` or `./new.sh
--fast`, not `loss: 1%`; `make` and `./agglab` are names.

    tc qdisc show      # an indented line
    prose of four words

```sh
unknown-program --flag   # in a block of shell every line counts
first \\
    --second
for n in 1 2; do
    echo $n
done
```

```
PATH=/x dask scheduler
result: 17
```
| `mn --topo x` | a table |
"""
    assert [each.text for each in commands(page, "page")] == [
        "unknown-program --flag",
        "first --second",
        "for n in 1 2; do echo $n; done",
        "PATH=/x dask scheduler",
        "agglab gone now",
        "./new.sh --fast",
        "tc qdisc show",
        "mn --topo x",
    ]
