"""The last lines of a run: what a person reads in five seconds. A pure function of the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.metrics import show

Metrics = Mapping[str, Any]


def run_summary(name: str, metrics: Metrics, folder: Path) -> str:
    """Verdict, exactness, time against the bound, losses, fidelity, folder."""
    lines = [f"{_verdict(metrics)}  {name}"]
    if "allreduce" in metrics:
        lines += [f"  {label:<10}{text}" for label, text in _facts(metrics)]
    if metrics["reason"]:
        lines.append(f"  {'reason':<10}{metrics['reason']}")
    lines.append(f"  {'results':<10}{folder}")
    return "\n".join(lines)


def sweep_summary(name: str, metrics: Metrics, folder: Path) -> str:
    """One row a point, and the growth that was expected."""
    points = metrics["points"]
    header = ("point", "exact", "time/round", "bound", "ratio", "sent again", "dropped", "fidelity")
    rows = [header, *(_row(point) for point in points)]
    lines = [f"{_verdict(metrics)}  {name}, {len(points)} runs", *_table(rows)]
    lines += [f"  growth of {path}: {show(value)}" for path, value in metrics["growth"].items()]
    if metrics["reason"]:
        lines.append(f"  reason    {metrics['reason']}")
    lines.append(f"  results   {folder}")
    return "\n".join(lines)


def _verdict(metrics: Metrics) -> str:
    return "PASSED" if metrics["ok"] else "FAILED"


def _facts(metrics: Metrics) -> list[tuple[str, str]]:
    times, totals, error = metrics["allreduce"]["time_s"], metrics["totals"], metrics["error"]
    exact = "every integer sum is right, bit for bit"
    if not metrics["exact"]:
        exact = f"{metrics['wrong_sums']} integer sums are WRONG"
    if error["max_abs"] is not None:
        exact += f"; float error at most {error['max_abs']:.2g} (allowed {error['bound']:.2g})"
    verdict = metrics["fidelity"]
    return [
        ("sums", exact),
        (
            "time",
            f"{times['median']:.4f} s a round (from {times['min']:.4f} to {times['max']:.4f}); "
            f"the links allow {metrics['link_bound_s']:.4f} s: ratio "
            f"{metrics['link_bound_ratio']:.3f}",
        ),
        (
            "packets",
            f"{totals['retransmitted']} sent again, {totals['injected_drops']} dropped on purpose, "
            f"{totals['other_drops']} lost otherwise, {totals['malformed']} refused",
        ),
        ("fidelity", f"{verdict['verdict']}: {verdict['reasons'][0]}"),
    ]


def _row(point: Metrics) -> tuple[str, ...]:
    label = ", ".join(f"{path} {value}" for path, value in point["settings"].items())
    metrics = point["metrics"]
    if "allreduce" not in metrics:
        return (label, "no", "-", "-", "-", "-", "-", metrics["reason"])
    return (
        label,
        "yes" if metrics["exact"] else "NO",
        f"{metrics['allreduce']['time_s']['median']:.4f} s",
        f"{metrics['link_bound_s']:.4f} s",
        f"{metrics['link_bound_ratio']:.3f}",
        str(metrics["totals"]["retransmitted"]),
        str(metrics["totals"]["injected_drops"]),
        metrics["fidelity"]["verdict"],
    )


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    cells = ([cell.ljust(w) for cell, w in zip(row, widths, strict=True)] for row in rows)
    return ["  " + "  ".join(row).rstrip() for row in cells]
