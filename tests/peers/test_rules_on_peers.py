"""What each P4 program of a system has to do (tests/unit/p4/rules), asked of the field's compiler
and switch too. tests/unit/p4/test_rules.py asks ours.

The expectations are models in plain Python and the counter that each kind of attack has; those of
trees are what our switches said while all sums came out right.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path

import pytest
from conversations import Conversation
from pairs import compile_with, need_pair, run_on
from rules import ROOT, Rules, every

from p4native.switch import Pipeline

pytestmark = pytest.mark.peers
PAIRS = [("p4c", "bmv2"), ("p4c", "agglab"), ("agglab", "bmv2")]
PROGRAM = attrgetter("program")
on_every_pair = pytest.mark.parametrize("pair", PAIRS, ids="-".join)
of_every_program = pytest.mark.parametrize("rules", every(), ids=PROGRAM)
Check = Callable[[Rules, Conversation], None]


@pytest.fixture(scope="session")
def products(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Rules, str], Path]:
    """products(rules, compiler): the program's JSON, compiled when it is first asked for."""
    folder = tmp_path_factory.mktemp("rules")

    def product(rules: Rules, compiler: str) -> Path:
        path = folder / f"{rules.program}-{compiler}.json"
        if not path.exists():
            source = ROOT / "p4" / f"{rules.program}.p4"
            compile_with(compiler, source, path, rules.flags())
        return path

    return product


@pytest.fixture
def check(pair: tuple[str, str], products: Callable[[Rules, str], Path], tmp_path: Path) -> Check:
    """check(rules, conversation): it goes so on the pair of compiler and switch."""
    compiler, target = pair
    need_pair(compiler, target)

    def run(rules: Rules, conversation: Conversation) -> None:
        script, json_path = tmp_path / "script.stf", tmp_path / f"{rules.program}.json"
        shutil.copy(products(rules, compiler), json_path)
        script.write_text("\n".join(conversation.script()))
        failures = run_on(target, json_path, script)
        assert not failures, "\n".join(failure[:1000] for failure in failures[:5])

    return run


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "rules, name",
    [
        pytest.param(rules, name, id=f"{rules.program}-{name}")
        for rules in every()
        for name in rules.conversations
    ],
)
@on_every_pair
def test_conversations_go_as_they_must(check: Check, rules: Rules, name: str, seed: int) -> None:
    check(rules, rules.conversations[name](random.Random(seed)))


@pytest.mark.parametrize("rules", [rules for rules in every() if rules.tree], ids=PROGRAM)
@on_every_pair
def test_what_switches_of_a_tree_said_is_said_by_all(
    check: Check, products: Callable[[Rules, str], Path], rules: Rules
) -> None:
    assert rules.tree
    load = partial(Pipeline.load, products(rules, "agglab"))
    for conversation in rules.tree(load, random.Random(3)):
        check(rules, conversation)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "rules, system",
    [pytest.param(rules, system, id=system) for rules in every() for system in rules.systems],
)
@on_every_pair
def test_every_kind_of_attack_is_counted_by_its_counter(
    check: Check, rules: Rules, system: str, seed: int
) -> None:
    check(rules, rules.attack(system, seed))


@of_every_program
@on_every_pair
def test_whatever_the_depth_and_the_length(check: Check, rules: Rules) -> None:
    check(rules, rules.deep_and_short())


@of_every_program
@on_every_pair
def test_hosts_errors_known_addresses_and_routes(check: Check, rules: Rules) -> None:
    check(rules, rules.forwarded())
