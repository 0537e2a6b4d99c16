"""Writes the last lines of a run, which a person can read in five seconds. The lines depend on the
metrics alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agglab.testbed.judge.collectives import calls_of, sentence
from agglab.testbed.judge.verdicts import FAILED, verdict_of
from agglab.testbed.report import headline_times
from agglab.testbed.results.metric_values import lookup, show
from agglab.testbed.results.shortcomings import NOTHING_COMPARED
from agglab.testbed.results.side_by_side import (
    OfSeveral,
    busiest,
    reason_lines,
    runs_of,
    warning_lines,
)
from agglab.testbed.run.result_folder import NOT_BEGUN
from agglab.testbed.scenario.workloads import judged_time
from agglab.testbed.scenario.workloads.judged_time import ROUND, Headline
from agglab.testbed.schema.finding_kinds import WARNINGS

Metrics = Mapping[str, Any]
REMEDIES = {
    "cpu-bound": "the machine was the limit, not the links: use larger packets (links.mtu), "
    "slower links, fewer workers, or switch.target native, which needs far less "
    "processor time than bmv2",
    "starved": "other programs kept the processors busy: repeat the run on a quieter machine",
}
"""Advice for each fidelity verdict. It is shown for runs whose sums are right although an
expectation does not hold."""


def summary(name: str, metrics: Metrics, folder: Path) -> str:
    """Returns the summary of one run, or of several."""
    if "points" in metrics or "contenders" in metrics:
        return _of_several(name, metrics, folder)
    return _of_one(name, metrics, folder)


def _of_one(name: str, metrics: Metrics, folder: Path) -> str:
    """Returns the verdict, exactness, time compared with the bound, losses, fidelity and folder of
    one run."""
    lines = [f"{_verdict(metrics)}  {name}"]
    if "totals" in metrics:
        lines += [f"  {label:<10}{text}" for label, text in _facts(metrics)]
    return "\n".join([*lines, *_ending(metrics, [metrics], folder)])


def _of_several(name: str, metrics: Metrics, folder: Path) -> str:
    """Returns a row for each run, and the growth that was expected."""
    runs = runs_of(metrics)
    lines = [f"{_verdict(metrics)}  {name}, {len(runs)} runs"]
    lines += [f"  {'warning':<10}{text}" for text in warning_lines(metrics)]
    chief = headline_times.common(run.metrics for run in runs)
    lines += _table([_row(run, runs, chief) for run in runs])
    growth = metrics.get("growth", {}).items()
    lines += [f"  growth of {path}: {show(value)}" for path, value in growth]
    return "\n".join([*lines, *_ending(metrics, [run.metrics for run in runs], folder)])


def _ending(whole: Metrics, runs: Sequence[Metrics], folder: Path) -> list[str]:
    lines = [f"  {'reason':<10}{text}" for text in reason_lines(whole)]
    return [*lines, *_remedy(whole, runs), f"  {'results':<10}{folder}"]


def _verdict(metrics: Metrics) -> str:
    return verdict_of(metrics).upper()


def _run_verdict(metrics: Metrics) -> str:
    """Returns the verdict of one run among several, which may never have begun."""
    return "not run" if metrics == NOT_BEGUN else _verdict(metrics)


def _remedy(whole: Metrics, runs: Sequence[Metrics]) -> list[str]:
    """Returns a line of advice if all sums are right and the run or sweep failed because the
    machine is too small."""
    if verdict_of(whole) != FAILED or not all(
        run.get("exact") and not run["wrong_results"] for run in runs
    ):
        return []
    verdicts = [run["fidelity"]["verdict"] for run in runs]
    found = next((text for verdict, text in REMEDIES.items() if verdict in verdicts), None)
    return [f"  {'remedy':<10}{found}"] if found else []


def _facts(metrics: Metrics) -> list[tuple[str, str]]:
    totals, verdict = metrics["totals"], metrics["fidelity"]
    facts = [*_findings(metrics["findings"]), ("sums", _sums(metrics))]
    several = len(metrics["jobs"]) > 1
    for name, job in metrics["jobs"].items():
        facts.append((name[:9] if several else "time", _time(job)))
        facts += [("calls", sentence(calls)) for calls in [calls_of(job)] if calls]
        facts += [("restarts", text) for text in _restarts(name if several else "", job)]
        facts += [("gain", text) for text in job.get("gain_limits", ())]
    if several and metrics["fairness"]["jain"] is not None:
        shares = metrics["fairness"]["shares"].items()
        parts = ", ".join(f"{name} {share:.1%}" for name, share in shares)
        facts.append(("fairness", f"Jain index {metrics['fairness']['jain']:.4f}: {parts}"))
    if metrics["failure"]:
        after_s, reason = metrics["failure"]["after_s"], metrics["failure"]["reason"]
        facts.append(("failure", f"after {after_s:.3g} s: {reason}"))
    refused = totals["malformed"] + totals["forged"]
    packets = (
        f"{totals['retransmitted']} packets sent again, {totals['injected_drops']} dropped on "
        f"purpose, {totals['lost_down']} lost on links that were down, {totals['other_drops']} "
        f"lost otherwise, {refused} refused"
    )
    return [
        *facts,
        ("packets", packets),
        ("fidelity", f"{verdict['verdict']}: {verdict['reasons'][0]}"),
    ]


def _findings(findings: Sequence[Metrics]) -> Iterator[tuple[str, str]]:
    """Yields the findings, which come before all numbers, because they say what these lack."""
    for each in findings:
        label = "warning" if each["kind"] in WARNINGS else "finding"
        yield label, f"{each['kind']}: {each['text']}"


def _sums(metrics: Metrics) -> str:
    """Returns a text about which sums were verified: integers, floats computed from integers, or
    sums of floats."""
    judged = [job for job in metrics["jobs"].values() if job["error"]["within"] is not None]
    added = [job for job in judged if job["error"]["bound"] is None]
    integers = len(added) < len(metrics["jobs"])
    if wrong := [text for text in (_wrong(metrics, "sums"), _wrong(metrics, "results")) if text]:
        return " and ".join(wrong if integers else wrong[-1:]) + " are WRONG"
    if not any(job["rounds"] for job in metrics["jobs"].values()):
        return "no round was completed"
    if metrics["exact"] is None:
        return NOTHING_COMPARED
    exact = [*(["integer sum"] if integers else []), *(["float received"] if added else [])]
    text = " and ".join(f"every {what}" for what in exact)
    text += f" {'are' if len(exact) > 1 else 'is'} right, bit for bit"
    errors = [job["error"] for job in judged if job["error"]["max_abs"] is not None]
    if errors and not added:
        worst = max(errors, key=_largest)
        error = f"{worst['max_abs']:.2g} (allowed {worst['bound']:.2g})"
        text += f"; no float that was received is wrong by more than {error}"
    return text


def _wrong(metrics: Metrics, what: str) -> str:
    count = metrics[f"wrong_{what}"]
    return f"{count} {'integer ' if what == 'sums' else ''}{what}" if count else ""


def _largest(error: Metrics) -> float:
    return float(error["max_abs"])


def _time(job: Metrics) -> str:
    times = job["allreduce"]["time_s"]
    if times["median"] is None:
        return "no round was completed"
    taken = f"{times['median']:.4f} s a round (from {times['min']:.4f} to {times['max']:.4f})"
    chief = judged_time.headline(job)
    if chief != ROUND and (own_s := lookup(job, chief.metric)) is not None:
        taken = f"{own_s:.4g} s a {chief.of}; {taken}"
    training = job.get("training", {})
    if "reductions" in training:
        reduced = f"{training['reductions']} all-reduces in {training['reducing_s']:.4f} s"
        return f"{taken}; {reduced}"
    if job["link_bound_ratio"] is None:
        sends = any(worker["bytes_sent"] for worker in job["workers"].values())
        unknown = "what crosses the links is decided in the round, so their time has no bound"
        if job["link_bound_s"] is None:
            unknown = "the system states no bound"
        return f"{taken}; {unknown if sends else 'nothing crosses a link'}"
    return (
        f"{taken}; the links alone need {job['link_bound_s']:.4f} s: ratio "
        f"{job['link_bound_ratio']:.3f}"
    )


def _restarts(name: str, job: Metrics) -> list[str]:
    """Returns a text about the rounds of a job that had to be repeated; an empty list if there were
    none."""
    if not job["restarts"]:
        return []
    count = "1 round was" if job["restarts"] == 1 else f"{job['restarts']} rounds were"
    text = f"{name + ': ' if name else ''}{count} aborted and run again"
    if job["lost_workers"]:
        text += f", without {', '.join(job['lost_workers'])}"
    return [text]


def _row(run: OfSeveral, runs: Sequence[OfSeveral], chief: Headline) -> dict[str, str]:
    """Returns for each column of the table the run's cell. chief: what the times of all runs are
    those of. If a run has several jobs, its time is that of the slowest. A run that was aborted
    has only a verdict."""
    metrics, median_s = run.metrics, headline_times.time_s(run.metrics, chief)
    timed, ended, carried = median_s is not None, "totals" in metrics, busiest(metrics)
    bound_s = (metrics.get("link_bound_s") or None) if timed else None
    times_first = headline_times.times_first(run, runs, chief)
    ratio = lookup(metrics, "link_bound_ratio")
    row = {"point": run.point} if run.point else {}
    row |= {"contender": run.contender} if run.contender else {}
    row |= {"verdict": _run_verdict(metrics), "exact": _exact(metrics) if ended else "-"}
    digits = ".4f" if chief == ROUND else ".4g"
    row[f"time/{chief.of}"] = f"{median_s:{digits}} s" if timed else "-"
    if run.contender:
        row[f"x {run.first}"] = "-" if times_first is None else f"{times_first:.3f}"
    if chief == ROUND:
        row["bound"] = "-" if bound_s is None else f"{bound_s:.4f} s"
        row["ratio"] = "-" if ratio is None else f"{ratio:.3f}"
    if run.contender:
        row["busiest link"] = f"{carried[0]} {carried[1] / 1e6:.2f} MB" if carried else "-"
    totals = metrics.get("totals", {})
    row["sent again"] = str(totals.get("retransmitted", "-"))
    row["dropped"] = str(totals.get("injected_drops", "-"))
    row["fidelity"] = lookup(metrics, "fidelity.verdict") or "-"
    return row


def _exact(metrics: Metrics) -> str:
    if metrics["exact"] is None and not metrics["wrong_results"]:
        return "-"
    return "yes" if metrics["exact"] and not metrics["wrong_results"] else "NO"


def _table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns the table's lines, with the columns of the first row, which all rows have."""
    lines = [tuple(rows[0]), *(tuple(row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = ([cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in lines)
    return ["  " + "  ".join(row).rstrip() for row in cells]
