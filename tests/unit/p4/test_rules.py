"""Every program's conversations with our compiler and our switch; and that one that goes otherwise
is seen."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

import pytest
from conversations import Conversation
from rules import Rules, every

from p4native.stf import run_stf
from p4native.switch import Pipeline

CONVERSATIONS = [
    pytest.param(rules, name, id=f"{rules.program}-{name}")
    for rules in every()
    for name in rules.conversations
]
ATTACKS = [pytest.param(rules, system, id=system) for rules in every() for system in rules.systems]
PROGRAM = attrgetter("program")
SEEDS = range(4)
Failures = Callable[[Rules, Conversation], list[str]]
Product = Callable[[Rules], Path]


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """product(rules): the program's JSON, compiled when it is first asked for."""
    folder = tmp_path_factory.mktemp("rules")
    made: dict[str, Path] = {}

    def make(rules: Rules) -> Path:
        if rules.program not in made:
            made[rules.program] = rules.compiled(folder)
        return made[rules.program]

    return make


@pytest.fixture
def failures(product: Product, tmp_path: Path) -> Failures:
    def run(rules: Rules, conversation: Conversation) -> list[str]:
        script = tmp_path / "script.stf"
        script.write_text("\n".join(conversation.script()))
        return run_stf(product(rules), script).failures

    return run


@pytest.mark.long(but=["switchml-two jobs-0", "omnireduce-root-0", "atp-root-0"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rules, name", CONVERSATIONS)
def test_conversations_go_as_they_must(
    failures: Failures, rules: Rules, name: str, seed: int
) -> None:
    assert failures(rules, rules.conversations[name](random.Random(seed))) == []


@pytest.mark.parametrize("rules", [rules for rules in every() if rules.rare], ids=PROGRAM)
def test_conversations_reach_the_rare_states(rules: Rules) -> None:
    """Those that the test above has."""
    drawn = [make(random.Random(n)) for make in rules.conversations.values() for n in SEEDS]
    assert rules.rare - {state for each in drawn for state in each.reached} == set()


@pytest.mark.long(but=["omnireduce"])
@pytest.mark.parametrize("rules", [rules for rules in every() if rules.tree], ids=PROGRAM)
def test_what_switches_of_a_tree_said_is_said_again(
    failures: Failures, product: Product, rules: Rules
) -> None:
    assert rules.tree
    load = partial(Pipeline.load, product(rules))
    said = rules.tree(load, random.Random(3))
    assert len(said) > 1 and all(any(step.out for step in one.steps) for one in said)
    for conversation in said:
        assert failures(rules, conversation) == []


@pytest.mark.long(but=["switchml-1", "ring-1"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rules, system", ATTACKS)
def test_every_kind_of_attack_is_counted_by_its_counter(
    failures: Failures, rules: Rules, system: str, seed: int
) -> None:
    conversation = rules.attack(system, seed)
    assert conversation.counters["forged(0)"] > 0
    assert failures(rules, conversation) == []


@pytest.mark.long(but=["switchml"])
@pytest.mark.parametrize("rules", every(), ids=PROGRAM)
def test_whatever_the_depth_and_the_length(failures: Failures, rules: Rules) -> None:
    assert failures(rules, rules.deep_and_short()) == []


@pytest.mark.long(but=["switchml", "atp"])
@pytest.mark.parametrize("rules", every(), ids=PROGRAM)
def test_hosts_errors_known_addresses_and_routes(failures: Failures, rules: Rules) -> None:
    assert failures(rules, rules.forwarded()) == []


@pytest.mark.long(but=["switchml-two jobs", "atp-root"])
@pytest.mark.parametrize("rules, name", CONVERSATIONS)
def test_a_conversation_that_goes_otherwise_is_seen(
    failures: Failures, rules: Rules, name: str
) -> None:
    """Another byte, another port, nothing at all, one packet more in a counter."""
    right = rules.conversations[name](random.Random(1))
    answered = next(n for n, step in enumerate(right.steps) if step.out)
    step = right.steps[answered]
    port, frame = step.out[0]
    others = [(port, frame[:-1] + bytes([frame[-1] ^ 1])), (port + 7, frame), None]
    for other in others:
        out = (*([other] if other else []), *step.out[1:])
        steps = [*right.steps]
        steps[answered] = replace(step, out=out)
        assert failures(rules, replace(right, steps=steps)), other
    counter = next(iter(right.counters))
    counters = {**right.counters, counter: right.counters[counter] + 1}
    assert failures(rules, replace(right, counters=counters))
