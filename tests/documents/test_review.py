"""Every command line of the documents has a review, and every review is of one."""

from __future__ import annotations

from collections import Counter

from pages import ROOT, commands, shown
from reviewed import REVIEWED


def test_every_command_of_the_documents_is_reviewed() -> None:
    new = [str(each) for each in shown() if each.text not in REVIEWED]
    assert not new, "say in tests/documents/reviewed.py how a test runs these commands"


def test_every_review_is_of_a_command_in_the_documents() -> None:
    texts = {each.text for each in shown()}
    assert [text for text in REVIEWED if text not in texts] == []


def test_whatever_is_not_run_as_written_says_why() -> None:
    silent = [text for text, how in REVIEWED.items() if not how.why and how.quick != text]
    assert silent == []


def test_a_page_that_another_test_follows_has_that_test() -> None:
    tests = Counter(how.followed_by for how in REVIEWED.values() if how.followed_by)
    assert set(tests) and all((ROOT / test).is_file() for test in tests)


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
