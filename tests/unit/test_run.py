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


def test_the_quick_part_names_what_exists_and_needs_no_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(run.subprocess, "call", lambda command, cwd: called.append(command) or 0)
    assert run.main(["--quick", "-x"]) == 0
    (command,) = called
    assert command[-len(run.QUICK) - 1 :] == [*run.QUICK, "-x"]
    assert "not root" in command
    assert set(run.NOT_QUICK) <= set(command)
    left_out = [option.removeprefix("--ignore=") for option in run.NOT_QUICK]
    assert [path for path in (*run.QUICK, *left_out) if not (run.ROOT / path).exists()] == []
