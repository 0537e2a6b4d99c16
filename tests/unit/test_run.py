"""tests/run.py: a failure of either part fails the whole, and no test at all is no success."""

import pytest
import run


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([0, 0], 0),
        ([0, 5], 0),
        ([5, 0], 0),
        ([5, 5], 5),
        ([1, 0], 1),
        ([0, 1], 1),
        ([5, 1], 1),
        ([3, 1], 3),
        ([2], 2),
        ([4], 4),
    ],
)
def test_the_exit_code_of_both_parts(codes: list[int], code: int) -> None:
    assert run.together(codes) == code


def test_every_test_is_in_one_part() -> None:
    (_, together, *_), (_, alone) = run.PARTS
    assert (together, alone) == ("not root", "root")
