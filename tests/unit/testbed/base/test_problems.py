"""Every mistake in a scenario is one line with the place, the key's path and what is allowed."""

from pathlib import Path

import pytest
from scenario_mistakes import ONE_MISTAKE

from agglab.testbed.base.problems import nearest_file
from agglab.testbed.scenario import ScenarioError, load


def complaints(tmp_path: Path, text: str | bytes, *settings: str) -> list[str]:
    path = tmp_path / "s.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ScenarioError) as caught:
        load(path, settings)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(caught.value.problems)
    return [line.removeprefix(f"{tmp_path}/") for line in lines]


@pytest.mark.parametrize("mistake", ONE_MISTAKE)
def test_one_mistake_is_one_line(tmp_path: Path, mistake: str) -> None:
    text, expected = ONE_MISTAKE[mistake]
    found = complaints(tmp_path, text)
    assert len(found) == 1, found
    assert found[0].startswith(expected), found[0]


def test_every_mistake_is_found_in_one_pass(tmp_path: Path) -> None:
    text = """
name: a b
sed: 3
topology: {kind: tree, workers: 0}
links: {rate: 100, loss: 100%, delay: 5 parsec}
switch: {lanes: 0, program: foo}
expect: {exact: 1, foo: 3}
"""
    paths = {line.split(": ")[1] for line in complaints(tmp_path, text)}
    assert {path for path in paths if path.startswith("links.")} == {
        "links.rate",
        "links.loss",
        "links.delay",
    }
    others = {"name", "sed", "topology.kind", "topology.workers"}
    others |= {"switch.lanes", "switch.program", "expect.exact", "expect.foo"}
    assert paths >= others
    assert len(paths) == 11


def test_an_alias_bomb_is_bounded(tmp_path: Path) -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 9))
    found = complaints(tmp_path, "l0: &l0 [x]\n" + levels)
    assert len(found) == 1
    assert "more than 5000 values" in found[0]


def test_a_mistake_on_the_command_line_is_placed_there(tmp_path: Path) -> None:
    found = complaints(tmp_path, "seed: 1", "links.loss=7")
    assert found == [
        "--set 'links.loss=7': links.loss: '7' would be 700 %, did you mean '7%'?; "
        "allowed: a percentage or a fraction from 0 to below 100% (0.1% is 0.001)"
    ]
    assert complaints(tmp_path, "seed: 1", "switch={slots: 1, slots: 2}") == [
        "--set 'switch={slots: 1, slots: 2}': switch.slots: is given twice"
    ]
    assert complaints(tmp_path, "seed: 1", "nonsense")[0].startswith(
        "--set 'nonsense': does not have the form"
    )


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no-such\.yaml: cannot read the file: No such file"):
        load(tmp_path / "no-such.yaml")
    with pytest.raises(ScenarioError, match="cannot read the file: Is a directory"):
        load(tmp_path)


def test_a_file_that_is_not_there_names_the_most_similar(tmp_path: Path) -> None:
    for name in ("maximum.p4", "run.json", "maximum.py"):
        (tmp_path / name).touch()
    text = "switch: {program: maximum, entries: runn.json}\nworkload: {worker: 'maximun:M'}"
    found = complaints(tmp_path, text)
    assert [line.partition("did you mean ")[2].partition("?")[0] for line in found] == [
        "'maximum.py'",
        "'run.json'",
        "'maximum.p4'",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mine.p4", ""),
        ("routr.p4", ", did you mean 'router.p4'?"),
        ("router", ", did you mean 'router.p4'?"),
        ("sub/routers.p4", ", did you mean 'sub/router2.p4'?"),
        ("other/routers.p4", ""),
    ],
)
def test_a_file_is_proposed_by_its_name_and_not_by_its_suffix(
    tmp_path: Path, given: str, said: str
) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("lim.p4", "router.p4", "big.p4", "sub/router2.p4", "router.txt"):
        (tmp_path / name).touch()
    assert nearest_file(given, [tmp_path], "*.p4") == said
