"""Worker classes of one's own: found, loaded, refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agglab.hosts import AllReducer, own_worker

CLASS = """
from agglab.hosts import AllReducer
import beside_it

class Mine(AllReducer):
    @staticmethod
    def combine(inputs):
        return inputs[0] * beside_it.FACTOR

class Plain(AllReducer):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/mine.py").write_text(CLASS)
    (tmp_path / "deep/beside_it.py").write_text("FACTOR = 3\n")
    return tmp_path


@pytest.mark.parametrize("spec", ["deep.mine:Mine", "deep/mine.py:Mine"])
def test_a_module_is_found_in_the_first_folder_that_has_it(folder: Path, spec: str) -> None:
    found = own_worker.find(spec, (folder / "deep", folder))
    assert found == f"{folder}/deep/mine.py:Mine"
    assert own_worker.load(found).__name__ == "Mine"


def test_combine_is_the_class_s_own_or_none(folder: Path) -> None:
    spec = f"{folder}/deep/mine.py"
    combine = own_worker.combine_of(f"{spec}:Mine")
    assert combine is not None
    assert combine([np.array([2, 5]), np.array([7, 7])]).tolist() == [6, 15]
    assert own_worker.combine_of(f"{spec}:Plain") is None


def test_none_of_one_s_own_is_the_usual_one() -> None:
    assert own_worker.load("") is AllReducer
    assert own_worker.find("no.such:Thing", (Path("/nonexistent"),)) == "no.such:Thing"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("no_such_module:X", "no_such_module: ModuleNotFoundError: No module named"),
        ("hosts.wire:Batch", "hosts.wire has no class Batch that is a subclass of"),
        ("hosts:AllReduceError", "hosts has no class AllReduceError that is a subclass of"),
        ("hosts:Nothing", "hosts has no class Nothing that is a subclass of"),
    ],
)
def test_what_cannot_be_a_worker_is_refused_in_a_line(spec: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        own_worker.load(spec)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return inputs[9]", "combine: IndexError: list index out of range"),
        ("return inputs[0][:-1]", r"combine returned shape \(2,\); it must be \(3,\)"),
        ("return inputs[0] * 0.5", "combine returned dtype float64; it must be an integer type"),
        ("return None", r"combine returned shape \(\); it must be \(3,\)"),
        ("raise SyntaxWarning('x')", "combine: SyntaxWarning: x"),
    ],
)
def test_a_combine_that_makes_something_else_is_refused(
    tmp_path: Path, body: str, said: str
) -> None:
    module = tmp_path / "odd.py"
    module.write_text(
        "from agglab.hosts import AllReducer\n"
        "class Odd(AllReducer):\n"
        "    @staticmethod\n"
        f"    def combine(inputs):\n        {body}\n"
    )
    with pytest.raises(own_worker.WorkerError, match=said):
        own_worker.try_combine(f"{module}:Odd", "int32")


def test_a_combine_with_self_is_told_what_it_needs(tmp_path: Path) -> None:
    module = tmp_path / "method.py"
    module.write_text(
        "from agglab.hosts import AllReducer\n"
        "class M(AllReducer):\n    def combine(self, inputs): return inputs[0]\n"
    )
    with pytest.raises(own_worker.WorkerError, match="it needs @staticmethod"):
        own_worker.try_combine(f"{module}:M", "float32")
