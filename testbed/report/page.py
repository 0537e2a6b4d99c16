"""report.html: one file, no scripts, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from agglab.testbed.metrics import lookup, show
from agglab.testbed.report.figures import anything_again
from agglab.testbed.side_by_side import OfSeveral, busiest, runs_of

STYLE = """
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80em; margin: 2em auto; padding: 0 1em;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.verdict { color: white; padding: 0.15em 0.6em; border-radius: 0.3em; }
.passed { background: #00745a; } .failed { background: #b02a00; } .limited { background: #8a5a00; }
td.bad { color: #b02a00; font-weight: bold; }
table { border-collapse: collapse; margin: 0.5em 0; } caption { text-align: left; }
th, td { border-bottom: 1px solid #ddd; padding: 0.2em 0.8em 0.2em 0; text-align: right;
  vertical-align: top; }
th:first-child, td:first-child, td.text { text-align: left; }
th, td { overflow-wrap: normal; } td.text, td:first-child { overflow-wrap: anywhere; }
td { font-variant-numeric: tabular-nums; }
pre { background: #f5f5f5; padding: 0.8em; overflow-x: auto; font-size: 13px; }
figure { margin: 1em 0; } svg { max-width: 100%; height: auto; }
.wide table { font-size: 13px; line-height: 1.4; width: 100%; }
.wide th, .wide td { padding-right: 0.4em; } .wide.many table { font-size: 10.5px; }
.facts td:last-child:not(.text) { white-space: nowrap; }
.manifest td { text-align: left; overflow-wrap: anywhere; }
.manifest td:first-child { overflow-wrap: break-word; }
@media (max-width: 75em) {
  .wide table, .wide tbody { display: block; } .wide tr.head { display: none; }
  .wide tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(16em, 1fr));
    gap: 0 1.5em; border-bottom: 2px solid #bbb; padding: 0.5em 0; }
  .wide td { display: flex; justify-content: space-between; gap: 0.5em; border: 0; padding: 0; }
  .wide td::before { content: attr(data-of); opacity: 0.75; }
  .wide td:first-child { grid-column: 1 / -1; justify-content: flex-start; font-weight: bold; }
  .wide td:first-child::before { content: none; }
  .wide td.text { grid-column: 1 / -1; justify-content: flex-start; }
}
@media (prefers-color-scheme: dark) {
  body { background: #1c1c1c; color: #ddd; } a { color: #8ab4f8; }
  pre { background: #2a2a2a; } th, td, .wide tr { border-color: #444; }
  td.bad { color: #ff8a65; }
  svg { filter: invert(0.89) hue-rotate(180deg); }
}
"""

Metrics = Mapping[str, Any]
MANY_COLUMNS = 12
ROWS_OPEN = 64
"""A longer table is folded."""
OF_THE_NETWORK = ("network-bound", "virtual-time")
"""Verdicts of fidelity that say that the network was measured."""


def page(
    name: str, metrics: Metrics, figures: Mapping[str, str], scenario: str, manifest: Metrics
) -> str:
    """The report of one folder. figures: file name -> SVG text."""
    body = [_header(name, metrics, manifest)]
    if "points" in metrics or "contenders" in metrics:
        body.append(_section("Runs", _runs(runs_of(metrics)) + _growth(metrics)))
    elif "totals" in metrics:
        body.append(_section("Result", _facts(metrics)))
        body += _several(metrics)
    body += [f"<figure>{svg}</figure>" for svg in figures.values()]
    if "totals" in metrics:
        if not anything_again(metrics):
            body.append("<p>No worker sent or heard anything twice.</p>")
        for job, own in metrics["jobs"].items():
            title = "Workers" if len(metrics["jobs"]) == 1 else f"Workers of {job}"
            body.append(_section(title, _table("worker", own["workers"])))
        body.append(_section("Switches", _table("switch", _flat_switches(metrics["switches"]))))
        body.append(_section("Links", _table("direction", _ways(metrics["links"]))))
    body.append(_section("Scenario as resolved", f"<pre>{escape(scenario)}</pre>"))
    body.append(_section("Manifest", _manifest(manifest)))
    return _document(name, "\n".join(body))


def _document(title: str, body: str) -> str:
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _header(name: str, metrics: Metrics, manifest: Metrics) -> str:
    kind = "passed" if metrics["ok"] else "failed"
    reason = f"<p>{escape(metrics['reason'])}</p>" if metrics["reason"] else ""
    started = escape(str(manifest.get("started", "")))
    badge = f"<span class='verdict {kind}'>{kind}</span>"
    for verdict in dict.fromkeys(_verdicts(metrics)):
        if verdict not in OF_THE_NETWORK:
            badge += f" <span class='verdict limited'>{escape(verdict)}</span>"
    return (
        f"<h1>{escape(name)} {badge}</h1>"
        f"<p>{started}, seed {escape(str(manifest.get('seed', '')))}</p>{reason}"
    )


def _verdicts(metrics: Metrics) -> list[str]:
    """Of fidelity: the run's, or those of several that ended."""
    found = (lookup(run.metrics, "fidelity.verdict") for run in runs_of(metrics))
    return [verdict for verdict in found if verdict]


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{content}"


def _facts(metrics: Metrics) -> str:
    facts = {
        "integer sums exact": metrics["exact"],
        "wrong integer sums": metrics["wrong_sums"],
        "wrong results": metrics["wrong_results"],
        "bytes of every link as predicted": metrics["links_as_predicted"],
        **(_job_facts(metrics) if len(metrics["jobs"]) == 1 else {}),
        **{name.replace("_", " "): value for name, value in metrics["totals"].items()},
        "fidelity": metrics["fidelity"]["verdict"],
    }
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{_cell(name, value)}</tr>" for name, value in facts.items()
    )
    failure = metrics["failure"]
    failed = f"<p>Failure: {escape(failure['reason'])}</p>" if failure else ""
    reasons = "".join(f"<li>{escape(text)}</li>" for text in metrics["fidelity"]["reasons"])
    found = "".join(
        f"<li>{escape(each['kind'])}: {escape(each['text'])}</li>" for each in metrics["findings"]
    )
    failed += f"<p>Findings:</p><ul>{found}</ul>" if found else ""
    evidence = f"<p>Fidelity, the evidence:</p><ul>{reasons}</ul>"
    return f"<table class='facts'>{rows}</table>{failed}{evidence}"


def _job_facts(job: Metrics) -> dict[str, Any]:
    return {
        "rounds": job["rounds"],
        "largest float error": job["error"]["max_abs"],
        "allowed float error": job["error"]["bound"],
        "median time of a round (s)": job["allreduce"]["time_s"]["median"],
        "link bound (s)": job["link_bound_s"],
        "time / link bound": job["link_bound_ratio"],
        "bound given the loss (s)": job["lossy_bound_s"],
        "time / bound given the loss": job["lossy_bound_ratio"],
        "aggregated elements per second": job["allreduce"]["ate_per_s"],
        "rounds run again": job["restarts"],
        "workers lost": ", ".join(job["lost_workers"]) or 0,
    }


def _several(metrics: Metrics) -> list[str]:
    """A table of the jobs, where there are several."""
    if len(metrics["jobs"]) == 1:
        return []
    rows = {
        name: {
            "exact": job["exact"],
            "wrong results": job["wrong_results"],
            **_job_facts(job),
            "share": metrics["fairness"]["shares"][name],
        }
        for name, job in metrics["jobs"].items()
    }
    jain = f"<p>Jain index of the jobs: {escape(_shown(metrics['fairness']['jain']))}</p>"
    return [_section("Jobs", _table("job", rows) + jain)]


def _runs(runs: Sequence[OfSeveral]) -> str:
    rows = {}
    for run in runs:
        label = ": ".join(part for part in (run.point, run.contender) if part)
        href = escape(f"{run.folder}/report.html", quote=True)
        rows[f"<a href='{href}'>{escape(label)}</a>"] = _run(run)
    return _table("run", rows, escaped=True)


def _run(run: OfSeveral) -> dict[str, Any]:
    """One of several. A run that broke off has a reason and nothing else."""
    metrics = run.metrics
    return {
        "verdict": "passed" if metrics["ok"] else "failed",
        "sums exact": metrics.get("exact"),
        "wrong results": metrics.get("wrong_results"),
        "fidelity": lookup(metrics, "fidelity.verdict"),
        "median time (s)": lookup(metrics, "allreduce.time_s.median"),
        **(_compared(run) if run.contender else {}),
        "ratio": metrics.get("link_bound_ratio"),
        "why it failed": metrics["reason"] or lookup(metrics, "failure.reason") or "",
    }


def _compared(run: OfSeveral) -> dict[str, Any]:
    """How a contender's time and bytes compare with those of the first."""
    carried = busiest(run.metrics)
    return {
        f"times {run.first}": run.times_first,
        "in paired rounds": "" if run.spread is None else "{:.3g} to {:.3g}".format(*run.spread),
        "link bound (s)": run.metrics.get("link_bound_s"),
        "busiest link": "" if carried is None else f"{carried[0]} {carried[1] / 1e6:.3g} MB",
    }


def _growth(metrics: Metrics) -> str:
    """What was expected to grow, from the first to the last run; and how far to trust it."""
    rows = [
        f"<li>growth of {escape(path)}: {escape(_shown(value))}</li>"
        for path, value in metrics.get("growth", {}).items()
    ]
    other = sum(verdict not in OF_THE_NETWORK for verdict in _verdicts(metrics))
    if other:
        count = f"{other} of {len(runs_of(metrics))} runs"
        rows.append(f"<li>{count} did not measure the network: see the column fidelity</li>")
    return f"<ul>{''.join(rows)}</ul>" if rows else ""


def _table(first: str, rows: Mapping[str, Metrics], escaped: bool = False) -> str:
    """rows: name -> column -> value; the columns are those of the first row."""
    columns = list(next(iter(rows.values()), {}))
    head = "".join(f"<th>{escape(_heading(c))}</th>" for c in [first, *columns])
    lines = [f"<tr class='head'>{head}</tr>"]
    for name, values in rows.items():
        cells = "".join(_cell(_heading(c), values.get(c)) for c in columns)
        lines.append(f"<tr><td>{name if escaped else escape(name)}</td>{cells}</tr>")
    many = " many" if len(columns) > MANY_COLUMNS else ""
    table = f"<div class='wide{many}'><table>{''.join(lines)}</table></div>"
    if len(rows) <= ROWS_OPEN:
        return table
    return f"<details><summary>{len(rows)} rows</summary>{table}</details>"


def _cell(heading: str, value: Any) -> str:
    """On a narrow page the heading stands in the cell."""
    kinds = ["text"] if isinstance(value, str) and " " in value else []
    if _is_bad(heading, value):
        kinds.append("bad")
    marked = f" class='{' '.join(kinds)}'" if kinds else ""
    return f"<td{marked} data-of='{escape(heading, quote=True)}'>{escape(_shown(value))}</td>"


def _is_bad(heading: str, value: Any) -> bool:
    """Whether a value says that a run failed, or was no measurement of the network."""
    if heading == "verdict":
        return bool(value == "failed")
    if heading == "fidelity":
        return value is not None and value not in OF_THE_NETWORK
    if heading in ("exact", "sums exact", "integer sums exact"):
        return value is False
    return heading.startswith("wrong ") and bool(value)


def _heading(column: str) -> str:
    """`cpu_s` is "cpu (s)"."""
    name = column.removesuffix("_s").replace("_", " ")
    return f"{name} (s)" if column.endswith("_s") else name


def _shown(value: Any) -> str:
    """For reading: digits in groups, a dash for what there is not."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return show(value)
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1e5 else show(value)


def _flat_switches(switches: Metrics) -> dict[str, dict[str, Any]]:
    return {
        name: {
            **switch["packets"],
            **{k: v for k, v in switch.items() if k not in ("packets", "jobs", "register_bits")},
        }
        for name, switch in switches.items()
    }


def _ways(links: Metrics) -> dict[str, Metrics]:
    return {name: way for link in links.values() for name, way in link.items()}


def _manifest(manifest: Metrics) -> str:
    rows = "".join(
        f"<tr><td>{escape(path)}</td><td>{escape(str(value))}</td></tr>"
        for path, value in _leaves(manifest)
    )
    return f"<table class='manifest'>{rows}</table>"


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = dict(enumerate(value)).items()
    else:
        return [(path, value)]
    return [leaf for k, v in pairs for leaf in _leaves(v, f"{path}.{k}" if path else str(k))]
