"""Answers in sentences what a reader of a report wants to know first: what the scenario asked for,
whether the run passed, what limited it, and what to run next. The answers depend only on a run's
metrics and its scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agglab.testbed.base.command_lines import launcher_on_a_page
from agglab.testbed.judge.fidelity import OF_THE_MACHINE
from agglab.testbed.judge.verdicts import UNDECIDED, verdict_of
from agglab.testbed.report.expected import Judged
from agglab.testbed.report.losses import Loss
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.recorded_scenario import RecordedScenario, number
from agglab.testbed.results.shortcomings import NOTHING_COMPARED
from agglab.testbed.schema.kinds import decimal

Metrics = Mapping[str, Any]
FEW_ROUNDS = 5
MANY_ROUNDS = 20
MEANINGS = {
    "network-bound": "the links were the limit, so this run measured the network",
    "waiting": "neither a link nor a processor was the limit: the run spent its time waiting",
    "cpu-bound": "this machine's processors were the limit, so this run did not measure the "
    "network",
    "starved": "other programs used the processors, so this run did not measure the network",
}


@dataclass(frozen=True)
class Next:
    """A command to run, and what it would show."""

    command: str
    why: str


def was_asked(recorded: RecordedScenario, metrics: Metrics) -> str:
    """Returns one sentence about what the scenario asks the testbed to do."""
    workers = sum(len(job["workers"]) for job in metrics["jobs"].values())
    rounds = recorded.value("workload.rounds", "1")
    parts = [
        f"{rounds} {'round' if rounds == '1' else 'rounds'} of "
        f"{recorded.value('workload.kind', 'allreduce')}",
        _values(recorded),
        f"by {workers} workers" if workers else "",
        f"in topology {recorded.value('topology.kind', '?')}",
        f"with the system {recorded.value('system')}" if recorded.value("system") else "",
        f"on links of {recorded.value('links.rate', '?')}",
        f"that lose {recorded.value('links.loss')} of the packets" if _loss(recorded) else "",
        "in virtual time" if recorded.value("backend") == "virtual" else "on this machine's links",
    ]
    faults = recorded.tree.get("faults")
    entries = faults if isinstance(faults, list) else []
    kinds = [str(entry.get("kind")) for entry in entries if isinstance(entry, dict)]
    more = f"; faults: {', '.join(dict.fromkeys(kinds))}" if kinds else ""
    return " ".join(part for part in parts if part) + more + "."


def _values(recorded: RecordedScenario) -> str:
    """Returns what a round sums; empty for a workload that the scenario gives no number of
    values."""
    elements = recorded.value("workload.elements")
    if not elements:
        return ""
    kind = recorded.value("workload.dtype")
    return f"over {_grouped(elements)} {kind + ' ' if kind else ''}values"


def did_it_hold(metrics: Metrics, expected: Sequence[Judged]) -> str:
    """Returns whether the run passed, and how many expectations held or why it failed."""
    if verdict_of(metrics) == UNDECIDED:
        return f"It cannot be said: {metrics['reason']}."
    if not metrics["ok"]:
        return f"No: {metrics['reason'] or 'the run did not finish'}."
    held = sum(each.holds for each in expected)
    if not expected:
        return (
            "Yes: the scenario has no expectations of its own, and nothing was found that no "
            "run may show."
        )
    nothing_compared = metrics.get("exact", True) is None
    sums = NOTHING_COMPARED if nothing_compared else "there are no unexpected wrong sums"
    return f"Yes: {held} of {len(expected)} expectations hold, and {sums}."


def what_limited(metrics: Metrics) -> str:
    """Returns the fidelity verdict, its meaning and its first reason. If there is a link bound,
    also returns how many times as long as that bound the median round took."""
    verdict = metrics["fidelity"]["verdict"]
    text = f"{verdict}: {MEANINGS.get(verdict, 'see the evidence below')}"
    reasons = metrics["fidelity"]["reasons"]
    text += f" ({reasons[0]})" if reasons else ""
    ratio, lossy = metrics.get("link_bound_ratio"), metrics.get("lossy_bound_ratio")
    if ratio is not None:
        text += f". The median round took {ratio:.3g} times as long as the links need"
        if lossy is not None and lossy < ratio:
            text += f", and {lossy:.3g} times as long as they need with their losses"
    return text + "."


def where_lost(found: Sequence[Loss]) -> str:
    """Returns how many packets were lost, and where most of them were lost. All places are in
    another table of the report."""
    if not found:
        return "Nowhere: no packet was lost."
    total = sum(loss.packets for loss in found)
    worst = found[0]
    share = f" ({worst.packets / worst.of:.2%} of all packets there)" if worst.of else ""
    return (
        f"{total:,} packets were lost in {len({loss.where for loss in found})} places, most of "
        f"them at {worst.where}: {worst.packets:,}{share}, {worst.why}."
    )


def next_runs(command: str, metrics: Metrics, recorded: RecordedScenario) -> list[Next]:
    """Returns at most three runs that would show more than this one, the most informative first."""
    return list(_next(f"{launcher_on_a_page()} run {command}", metrics, recorded))[:3]


def _next(run: str, metrics: Metrics, recorded: RecordedScenario) -> Iterator[Next]:
    """Yields what to run next. What went wrong comes first; of a run that did not finish, nothing
    can be said about times."""
    if metrics.get("verdict") == UNDECIDED:
        yield Next(
            f"{run} --set backend=virtual",
            "there, no process is ever late, so that the program alone is judged",
        )
    if metrics.get("wrong_sums") or metrics.get("wrong_results"):
        yield from _without(run, recorded, "sums are wrong", "they are also wrong")
    if metrics.get("failure"):
        yield from _without(run, recorded, "a round did not end", "it also fails to end")
    elif lookup(metrics, "rounds"):
        yield from _about_times(run, metrics, recorded)


def _without(run: str, recorded: RecordedScenario, wrong: str, also: str) -> Iterator[Next]:
    """Yields the runs that change one thing each which may be the cause of a mistake."""
    changes = {
        "without your own program": ("switch.program=auto", _own_program(recorded)),
        "without losses": ("links.loss=0", _loss(recorded)),
        "in virtual time": ("backend=virtual", recorded.value("backend") != "virtual"),
    }
    for where, (setting, is_possible) in changes.items():
        if is_possible:
            yield Next(f"{run} --set {setting}", f"{wrong}: find out whether {also} {where}")


def _own_program(recorded: RecordedScenario) -> bool:
    return recorded.value("switch.program").endswith(".p4")


def _about_times(run: str, metrics: Metrics, recorded: RecordedScenario) -> Iterator[Next]:
    verdict, waited = (lookup(metrics, f"fidelity.{key}") for key in ("verdict", "waited_for"))
    virtual = recorded.value("backend") == "virtual"
    if verdict in OF_THE_MACHINE and metrics.get("verdict") != UNDECIDED:
        yield Next(
            f"{run} --set backend=virtual",
            "this shows the network's own time, without this machine's processors",
        )
    if verdict in OF_THE_MACHINE:
        slower = _half(recorded.value("links.rate"))
        if slower:
            yield Next(f"{run} --set links.rate={slower}", "this machine can fill such links")
    window = decimal(recorded.value("switch.slots"))
    if waited == "window" and window:
        yield Next(
            f"{run} --set switch.slots={2 * int(window)}",
            "a larger window fills more of the bandwidth-delay product",
        )
    if _loss(recorded):
        yield Next(f"{run} --set links.loss=0", "this shows what the losses cost")
    elements = decimal(recorded.value("workload.elements"))
    if waited == "brevity" and elements:
        yield Next(
            f"{run} --set workload.elements={10 * int(elements)}",
            "these rounds are long enough to fill the links",
        )
    rounds = decimal(recorded.value("workload.rounds"))
    if rounds and rounds < FEW_ROUNDS:
        yield Next(
            f"{run} --set workload.rounds={MANY_ROUNDS}",
            f"with more rounds, `{launcher_on_a_page()} compare` can tell a difference from noise",
        )
    if virtual and verdict == "network-bound":
        yield Next(f"{run} --set backend=mininet", "this runs the same on this machine's links")
    if not virtual and verdict == "network-bound":
        yield Next(
            f"{run} --set backend=virtual", "this runs the same in virtual time, for comparison"
        )


def _loss(recorded: RecordedScenario) -> bool:
    return bool(number(recorded.value("links.loss")))


def _half(rate: str) -> str:
    """Returns half of a rate as it is written, such as 100mbit; empty if it has another form."""
    digits = rate.rstrip("abcdefghijklmnopqrstuvwxyz")
    value = decimal(digits)
    return f"{value / 2:g}{rate[len(digits) :]}" if value else ""


def _grouped(text: str) -> str:
    value = decimal(text)
    return text if value is None else f"{value:,.0f}"
