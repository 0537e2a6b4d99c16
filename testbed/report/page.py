"""report.html: one file, no scripts, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from testbed.metrics import lookup, show
from testbed.report.figures import anything_again

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
.verdict { color: white; padding: 0.15em 0.6em; border-radius: 0.3em; }
.passed { background: #00745a; } .failed { background: #b02a00; }
table { border-collapse: collapse; margin: 0.5em 0; } caption { text-align: left; }
th, td { border-bottom: 1px solid #ddd; padding: 0.2em 0.8em 0.2em 0; text-align: right; }
th:first-child, td:first-child { text-align: left; }
pre { background: #f5f5f5; padding: 0.8em; overflow-x: auto; font-size: 13px; }
figure { margin: 1em 0; } svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } td { font-variant-numeric: tabular-nums; }
.manifest td { text-align: left; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) {
  body { background: #1c1c1c; color: #ddd; } a { color: #8ab4f8; }
  pre { background: #2a2a2a; } th, td { border-color: #444; }
  svg { filter: invert(0.89) hue-rotate(180deg); }
}
"""

Metrics = Mapping[str, Any]
ROWS_OPEN = 64
"""A longer table is folded."""


def page(
    name: str, metrics: Metrics, figures: Mapping[str, str], scenario: str, manifest: Metrics
) -> str:
    """The report of one folder. figures: file name -> SVG text."""
    body = [_header(name, metrics, manifest)]
    if "points" in metrics:
        body.append(_section("Runs", _points(metrics["points"])))
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
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _header(name: str, metrics: Metrics, manifest: Metrics) -> str:
    kind = "passed" if metrics["ok"] else "failed"
    reason = f"<p>{escape(metrics['reason'])}</p>" if metrics["reason"] else ""
    started = escape(str(manifest.get("started", "")))
    return (
        f"<h1>{escape(name)} <span class='verdict {kind}'>{kind}</span></h1>"
        f"<p>{started}, seed {escape(str(manifest.get('seed', '')))}</p>{reason}"
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{content}"


def _facts(metrics: Metrics) -> str:
    facts = {
        "integer sums exact": metrics["exact"],
        "bytes of every link as predicted": metrics["links_as_predicted"],
        **(_job_facts(metrics) if len(metrics["jobs"]) == 1 else {}),
        **{name.replace("_", " "): value for name, value in metrics["totals"].items()},
        "fidelity": metrics["fidelity"]["verdict"],
    }
    rows = "".join(
        f"<tr><td>{escape(k)}</td><td>{escape(_shown(v))}</td></tr>" for k, v in facts.items()
    )
    failure = metrics["failure"]
    failed = f"<p>Failure: {escape(failure['reason'])}</p>" if failure else ""
    reasons = "".join(f"<li>{escape(text)}</li>" for text in metrics["fidelity"]["reasons"])
    return f"<table>{rows}</table>{failed}<p>Fidelity, the evidence:</p><ul>{reasons}</ul>"


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
            **_job_facts(job),
            "share": metrics["fairness"]["shares"][name],
        }
        for name, job in metrics["jobs"].items()
    }
    jain = f"<p>Jain index of the jobs: {escape(_shown(metrics['fairness']['jain']))}</p>"
    return [_section("Jobs", _table("job", rows) + jain)]


def _points(points: Sequence[Metrics]) -> str:
    rows = {}
    for i, point in enumerate(points):
        label = ", ".join(f"{path} {value}" for path, value in point["settings"].items())
        rows[f"<a href='point-{i}/report.html'>{escape(label)}</a>"] = _point(point["metrics"])
    return _table("run", rows, escaped=True)


def _point(metrics: Metrics) -> dict[str, Any]:
    return {
        "ok": metrics["ok"],
        "exact": metrics.get("exact"),
        "median time (s)": lookup(metrics, "allreduce.time_s.median"),
        "ratio": metrics.get("link_bound_ratio"),
    }


def _table(first: str, rows: Mapping[str, Metrics], escaped: bool = False) -> str:
    """rows: name -> column -> value; the columns are those of the first row."""
    columns = list(next(iter(rows.values()), {}))
    head = "".join(f"<th>{escape(_heading(c))}</th>" for c in [first, *columns])
    lines = [f"<tr>{head}</tr>"]
    for name, values in rows.items():
        cells = "".join(f"<td>{escape(_shown(values.get(c)))}</td>" for c in columns)
        lines.append(f"<tr><td>{name if escaped else escape(name)}</td>{cells}</tr>")
    table = f"<div class='wide'><table>{''.join(lines)}</table></div>"
    if len(rows) <= ROWS_OPEN:
        return table
    return f"<details><summary>{len(rows)} rows</summary>{table}</details>"


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
            **{k: v for k, v in switch.items() if k not in ("packets", "jobs")},
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
