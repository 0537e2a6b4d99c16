"""The last lines of a run: what a person reads in five seconds. A pure function of the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agglab.testbed.metrics import lookup, show

Metrics = Mapping[str, Any]
HEADER = (
    "point",
    "verdict",
    "exact",
    "time/round",
    "bound",
    "ratio",
    "sent again",
    "dropped",
    "fidelity",
)
REMEDIES = {
    "cpu-bound": "the machine was the limit, not the links: larger packets (links.mtu), slower "
    "links or fewer workers need less of it, switch.target native far less than bmv2",
    "starved": "other programs kept the run from the processors: repeat it on a quieter machine",
}
"""By verdict: what helps where the sums are right and yet an expectation was missed."""


def run_summary(name: str, metrics: Metrics, folder: Path) -> str:
    """Verdict, exactness, time against the bound, losses, fidelity, folder."""
    lines = [f"{_verdict(metrics)}  {name}"]
    if "totals" in metrics:
        lines += [f"  {label:<10}{text}" for label, text in _facts(metrics)]
    if metrics["reason"]:
        lines.append(f"  {'reason':<10}{metrics['reason']}")
    lines += _remedy(metrics, [metrics])
    lines.append(f"  {'results':<10}{folder}")
    return "\n".join(lines)


def sweep_summary(name: str, metrics: Metrics, folder: Path) -> str:
    """One row a point, and the growth that was expected."""
    points = metrics["points"]
    rows = [HEADER, *(_row(point) for point in points)]
    lines = [f"{_verdict(metrics)}  {name}, {len(points)} runs", *_table(rows)]
    lines += [f"  growth of {path}: {show(value)}" for path, value in metrics["growth"].items()]
    if metrics["reason"]:
        lines.append(f"  reason    {metrics['reason']}")
    lines += _remedy(metrics, [point["metrics"] for point in points])
    lines.append(f"  results   {folder}")
    return "\n".join(lines)


def _verdict(metrics: Metrics) -> str:
    return "PASSED" if metrics["ok"] else "FAILED"


def _remedy(whole: Metrics, runs: Sequence[Metrics]) -> list[str]:
    """A line for a run, or a sweep, that failed without a wrong sum on a machine too small."""
    if whole["ok"] or not all(run.get("exact") and not run["wrong_results"] for run in runs):
        return []
    verdicts = [run["fidelity"]["verdict"] for run in runs]
    found = next((text for verdict, text in REMEDIES.items() if verdict in verdicts), None)
    return [f"  {'remedy':<10}{found}"] if found else []


def _facts(metrics: Metrics) -> list[tuple[str, str]]:
    totals, verdict = metrics["totals"], metrics["fidelity"]
    facts = [("sums", _sums(metrics))]
    several = len(metrics["jobs"]) > 1
    for name, job in metrics["jobs"].items():
        facts.append((name[:9] if several else "time", _time(job)))
        facts += [("restarts", text) for text in _mishaps(name if several else "", job)]
    if several and metrics["fairness"]["jain"] is not None:
        shares = metrics["fairness"]["shares"].items()
        parts = ", ".join(f"{name} {share:.1%}" for name, share in shares)
        facts.append(("fairness", f"Jain index {metrics['fairness']['jain']:.4f}: {parts}"))
    if metrics["failure"]:
        after_s, reason = metrics["failure"]["after_s"], metrics["failure"]["reason"]
        facts.append(("failure", f"after {after_s:.3g} s: {reason}"))
    refused = totals["malformed"] + totals["forged"]
    packets = (
        f"{totals['retransmitted']} sent again, {totals['injected_drops']} dropped on purpose, "
        f"{totals['lost_down']} lost on links that were down, "
        f"{totals['other_drops']} lost otherwise, {refused} refused"
    )
    return [
        *facts,
        ("packets", packets),
        *(("finding", f"{found['kind']}: {found['text']}") for found in metrics["findings"]),
        ("fidelity", f"{verdict['verdict']}: {verdict['reasons'][0]}"),
    ]


def _sums(metrics: Metrics) -> str:
    """What was judged: integers, floats that the system makes of them, or floats that it adds."""
    judged = [job for job in metrics["jobs"].values() if job["error"]["within"] is not None]
    added = [job for job in judged if job["error"]["bound"] is None]
    integers = len(added) < len(metrics["jobs"])
    if wrong := [text for text in (_wrong(metrics, "sums"), _wrong(metrics, "results")) if text]:
        return " and ".join(wrong if integers else wrong[-1:]) + " are WRONG"
    if not any(job["rounds"] for job in metrics["jobs"].values()):
        return "no round ended"
    exact = [*(["integer sum"] if integers else []), *(["float received"] if added else [])]
    text = " and ".join(f"every {what}" for what in exact)
    text += f" {'are' if len(exact) > 1 else 'is'} right, bit for bit"
    errors = [job["error"] for job in judged if job["error"]["max_abs"] is not None]
    if errors and not added:
        worst = max(errors, key=_largest)
        error = f"{worst['max_abs']:.2g} (allowed {worst['bound']:.2g})"
        text += f"; every float received is off by at most {error}"
    return text


def _wrong(metrics: Metrics, what: str) -> str:
    count = metrics[f"wrong_{what}"]
    return f"{count} {'integer ' if what == 'sums' else ''}{what}" if count else ""


def _largest(error: Metrics) -> float:
    return float(error["max_abs"])


def _time(job: Metrics) -> str:
    times = job["allreduce"]["time_s"]
    if times["median"] is None:
        return "no round ended"
    taken = f"{times['median']:.4f} s a round (from {times['min']:.4f} to {times['max']:.4f})"
    if job["link_bound_ratio"] is None:
        return f"{taken}; nothing crosses a link"
    return (
        f"{taken}; the links allow {job['link_bound_s']:.4f} s: ratio {job['link_bound_ratio']:.3f}"
    )


def _mishaps(name: str, job: Metrics) -> list[str]:
    """What a job went through to get there."""
    if not job["restarts"]:
        return []
    count = "1 round was" if job["restarts"] == 1 else f"{job['restarts']} rounds were"
    text = f"{name + ': ' if name else ''}{count} broken off and run again"
    if job["lost_workers"]:
        text += f", without {', '.join(job['lost_workers'])}"
    return [text]


def _row(point: Metrics) -> tuple[str, ...]:
    label = ", ".join(f"{path} {value}" for path, value in point["settings"].items())
    metrics = point["metrics"]
    if "totals" not in metrics:
        return (label, _verdict(metrics), *["-"] * (len(HEADER) - 2))
    timed = lookup(metrics, "allreduce.time_s.median") is not None
    return (
        label,
        _verdict(metrics),
        "yes" if metrics["exact"] and not metrics["wrong_results"] else "NO",
        f"{metrics['allreduce']['time_s']['median']:.4f} s" if timed else "-",
        f"{metrics['link_bound_s']:.4f} s" if timed else "-",
        "-" if metrics["link_bound_ratio"] is None else f"{metrics['link_bound_ratio']:.3f}",
        str(metrics["totals"]["retransmitted"]),
        str(metrics["totals"]["injected_drops"]),
        metrics["fidelity"]["verdict"],
    )


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    cells = ([cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in rows)
    return ["  " + "  ".join(row).rstrip() for row in cells]
