"""The tables of docs/scenarios.md and docs/results.md, written from what the code knows."""

from __future__ import annotations

from agglab.testbed.scenario.finding_kinds import FINDING_KINDS
from agglab.testbed.scenario.kinds import AutoOr
from agglab.testbed.scenario.metric_names import METRICS
from agglab.testbed.scenario.schema import Key, keys


def key_table() -> str:
    """One row a key: path, what is allowed, default, meaning."""
    rows = ["| key | allowed | default | meaning |", "|---|---|---|---|"]
    for path, key, default in keys():
        if path.startswith("jobs[].workload.kind"):
            rows.append("| `jobs[].workload` | the keys of `workload` | `workload` | of this job |")
        elif not path.startswith("jobs[].workload."):
            allowed = (
                f"a list: {key.kind.allowed}" if isinstance(default, tuple) else key.kind.allowed
            )
            rows.append(f"| `{path}` | {allowed} | {_default(key, default)} | {key.doc} |")
    return "\n".join(rows)


def metric_table() -> str:
    """One row a metric: path, meaning."""
    rows = ["| path | meaning |", "|---|---|"]
    stated = {path: meaning for path, meaning in METRICS.items() if meaning}
    return "\n".join(rows + [f"| `{path}` | {meaning} |" for path, meaning in stated.items()])


def _default(key: Key, default: object) -> str:
    if default is None and not isinstance(key.kind, AutoOr):
        return ""
    if isinstance(default, tuple):
        return " ".join(f"`{key.kind.write(entry)}`" for entry in default)
    shown = key.kind.write(default)
    if isinstance(shown, bool):
        shown = str(shown).lower()
    return f"`{shown}`" if shown != "" else ""


def finding_table() -> str:
    """The kinds of findings, as Markdown."""
    rows = [f"| `{kind}` | {meaning} |" for kind, meaning in FINDING_KINDS.items()]
    return "\n".join(["| kind | meaning |", "|---|---|", *rows])
