"""The reasons of many failed runs in few lines."""

from __future__ import annotations

from agglab.testbed.results.failure_reasons import LINES_MAX, grouped, split

AGAIN = "sent-again: {} of 900 packets were sent again although nothing was lost (h1: chunk 3; x)"


def test_a_reason_is_split_only_where_another_one_begins() -> None:
    first, second = AGAIN.format(3), "expected exact = true, got false"
    assert split(f"{first}; {second}; slow: a round took 2 s") == [
        first,
        second,
        "slow: a round took 2 s",
    ]
    assert split("") == []


def test_few_reasons_are_kept_as_they_are() -> None:
    assert grouped([("loss 1%", "a"), ("loss 2%", "b")]) == ["loss 1%: a", "loss 2%: b"]


def test_many_runs_with_the_same_finding_share_a_line() -> None:
    failed = [(f"seed {n}", f"{AGAIN.format(n)}; slow: it took {n} s") for n in range(60)]
    assert grouped(failed) == [
        f"60 runs, such as seed 0: {AGAIN.format(0)}",
        "60 runs, such as seed 0: slow: it took 0 s",
    ]


def test_there_are_never_more_than_ten_lines() -> None:
    words = [chr(ord("a") + n) * 3 for n in range(20)]
    failed = [(f"seed {n}", word) for word in words for n in range(len(words))]
    failed += [("seed 77", AGAIN.format(n)) for n in range(30)]
    lines = grouped(failed)
    assert len(lines) == LINES_MAX == 10
    assert lines[0] == f"seed 77: {AGAIN.format(0)}"
    assert lines[1] == "20 runs, such as seed 0: aaa"
    assert lines[-1] == "20 runs for 12 other reasons"


def test_the_reasons_of_a_single_run_are_lines_without_a_label() -> None:
    """Of eleven expectations that do not hold, each has a line of its own no longer."""
    expected = [f"expected metric{chr(97 + n)} = {n}, got 7" for n in range(11)]
    assert grouped([("", "; ".join(expected[:3]))]) == expected[:3]
    lines = grouped([("", "; ".join(expected))])
    assert len(lines) == 10 and lines[0] == expected[0] and not any(": " in t for t in lines)


def test_a_line_is_short_even_if_a_reason_is_not() -> None:
    failed = [(f"seed {n}", "x" * 5000) for n in range(4)]
    (line,) = grouped(failed)
    assert len(line) < 250
