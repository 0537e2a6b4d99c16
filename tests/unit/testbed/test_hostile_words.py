"""Words of outsiders in a scenario, a log, a program's names: shown, never acted upon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agglab.testbed.base.errors import NodeFailed
from agglab.testbed.base.problems import Where
from agglab.testbed.real.targets.thrift import ProgramNames
from agglab.testbed.scenario import ScenarioError, load
from agglab.testbed.schema.document import Scalar
from agglab.testbed.schema.scenario import NAME
from agglab.testbed.systems.plan import TableEntry
from p4native.common.printable import plain
from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import check_text

HOSTILE = (
    *(
        "../up",
        "/etc/passwd",
        "a/b",
        "..",
        "-rf",
        "$(id)",
        "`id`",
        "a;id",
        "a b",
        "a\nb",
        "a'b",
        'a"b',
    ),
    *("<script>", "a\x1b[2Jb", "a\0b", "a\u202eb", "%s", "{x}", "é", "a#b", "", "a" * 200),
)
PLACES = {
    "name": "name: {0}\ntopology: {{kind: rack, workers: 2}}\n",
    "job": (
        "name: a\ntopology: {{kind: rack, workers: 2}}\njobs: [{{name: {0}, workers: [h1, h2]}}]\n"
    ),
    "switch": "name: a\ntopology: {{kind: custom, switches: [{0}], links: [h1-s1, h2-s1]}}\n",
    "link": "name: a\ntopology: {{kind: custom, switches: [s1], links: [h1-s1, {0}-s1]}}\n",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", HOSTILE)
def test_names_that_become_paths_or_commands_are_words(
    place: str, word: str, tmp_path: Path
) -> None:
    escaped = '"' + "".join(f"\\U{ord(c):08x}" for c in word) + '"'
    if place == "link":
        escaped = escaped[:-1]
        text = (
            PLACES[place].replace("{0}-s1", escaped + '-s1"').replace("{{", "{").replace("}}", "}")
        )
    else:
        text = PLACES[place].format(escaped)
    path = tmp_path / "fine.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as refused:
        load(path)
    assert all(line.isprintable() for line in str(refused.value).splitlines())


@pytest.mark.parametrize("stem", ["a;id", "a b", "<script>", "-rf", "a\x1b[2J", "$(id)", ".-", "é"])
def test_a_files_name_is_no_worse_than_a_name(stem: str, tmp_path: Path) -> None:
    """It names the result folder where the scenario has no name."""
    path = tmp_path / f"{stem}.yaml"
    path.write_text("topology: {kind: rack, workers: 2}\n")
    suite = load(path)
    assert NAME.read(Scalar(suite.name, False, Where(""))) == suite.name
    assert suite.points[0].resolved.name == suite.name


def test_what_a_log_holds_does_not_reach_the_terminal_as_a_command(tmp_path: Path) -> None:
    log = tmp_path / "s1.log"
    log.write_text("forged\x1b[2J\x1b]0;title\x07\rPASSED\n")
    said = NodeFailed("s1", "ended", ["switch", "\x1b[2J"], log).report()
    assert r"forged\x1b[2J" in said
    assert all(line.isprintable() for line in said.split("\n"))
    assert plain("a\tb\n\x9bc\u202e\r") == "a\tb\n\\x9bc\\u202e\\r"


def test_diagnostics_show_what_a_terminal_would_act_on() -> None:
    text = 'header h_t { bit<8> x; } /* \x1b[2J \u202e */ @name("\x1b]0;t\x07") header h_t { }'
    diagnostics = Diagnostics()
    check_text(text, "evil\x1b[2J.p4", diagnostics)
    said = render(diagnostics.entries, {"evil\x1b[2J.p4": text})
    assert "h_t" in said and all(line.isprintable() for line in said.splitlines())
    assert said.splitlines()[2].index("^") == text.rindex("h_t")


@pytest.mark.parametrize("name", ["t\nmc_mgrp_create 1", "t a", "t\0", "t=>", "é"])
def test_a_name_is_one_word_of_a_thrift_command(name: str) -> None:
    program: dict[str, Any] = {
        "header_types": [],
        "headers": [],
        "actions": [{"id": 0, "name": "a", "runtime_data": []}],
        "pipelines": [{"tables": [{"name": name, "key": [], "actions": ["a"], "action_ids": [0]}]}],
        "counter_arrays": [{"name": name, "size": 1}],
        "register_arrays": [],
    }
    names = ProgramNames(program)
    with pytest.raises(ValueError, match="cannot express"):
        names.entry(TableEntry(name, {}, "a", {}, default=True))
    with pytest.raises(ValueError, match="cannot express"):
        names.array("counter", name)
