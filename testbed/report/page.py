"""report.html: one file, no scripts, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from testbed.metrics import show

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
"""

Metrics = Mapping[str, Any]


def page(
    name: str, metrics: Metrics, figures: Mapping[str, str], scenario: str, manifest: Metrics
) -> str:
    """The report of one folder. figures: file name -> SVG text."""
    body = [_header(name, metrics, manifest)]
    if "points" in metrics:
        body.append(_section("Runs", _points(metrics["points"])))
    elif "allreduce" in metrics:
        body.append(_section("Result", _facts(metrics)))
    body += [f"<figure>{svg}</figure>" for svg in figures.values()]
    if "allreduce" in metrics:
        body.append(_section("Workers", _table("worker", metrics["workers"])))
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
    times = metrics["allreduce"]["time_s"]
    facts = {
        "integer sums exact": metrics["exact"],
        "largest float error": metrics["error"]["max_abs"],
        "allowed float error": metrics["error"]["bound"],
        "median time of a round (s)": times["median"],
        "link bound (s)": metrics["link_bound_s"],
        "time / link bound": metrics["link_bound_ratio"],
        "aggregated elements per second": metrics["allreduce"]["ate_per_s"],
        **{name.replace("_", " "): value for name, value in metrics["totals"].items()},
        "fidelity": metrics["fidelity"]["verdict"],
    }
    rows = "".join(
        f"<tr><td>{escape(k)}</td><td>{escape(show(v))}</td></tr>" for k, v in facts.items()
    )
    reasons = "".join(f"<li>{escape(text)}</li>" for text in metrics["fidelity"]["reasons"])
    return f"<table>{rows}</table><p>Fidelity, the evidence:</p><ul>{reasons}</ul>"


def _points(points: Sequence[Metrics]) -> str:
    rows = {}
    for i, point in enumerate(points):
        label = ", ".join(f"{path} {value}" for path, value in point["settings"].items())
        rows[f"<a href='point-{i}/report.html'>{escape(label)}</a>"] = _point(point["metrics"])
    return _table("run", rows, escaped=True)


def _point(metrics: Metrics) -> dict[str, Any]:
    if "allreduce" not in metrics:
        return {"ok": metrics["ok"], "exact": None, "median time (s)": None, "ratio": None}
    return {
        "ok": metrics["ok"],
        "exact": metrics["exact"],
        "median time (s)": metrics["allreduce"]["time_s"]["median"],
        "ratio": metrics["link_bound_ratio"],
    }


def _table(first: str, rows: Mapping[str, Metrics], escaped: bool = False) -> str:
    """rows: name -> column -> value; the columns are those of the first row."""
    columns = list(next(iter(rows.values()), {}))
    head = "".join(f"<th>{escape(c.replace('_', ' '))}</th>" for c in [first, *columns])
    lines = [f"<tr>{head}</tr>"]
    for name, values in rows.items():
        cells = "".join(f"<td>{escape(show(values.get(c)))}</td>" for c in columns)
        lines.append(f"<tr><td>{name if escaped else escape(name)}</td>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _flat_switches(switches: Metrics) -> dict[str, dict[str, Any]]:
    return {
        name: {**switch["packets"], **{k: v for k, v in switch.items() if k != "packets"}}
        for name, switch in switches.items()
    }


def _ways(links: Metrics) -> dict[str, Metrics]:
    return {name: way for link in links.values() for name, way in link.items()}


def _manifest(manifest: Metrics) -> str:
    rows = "".join(
        f"<tr><td>{escape(path)}</td><td>{escape(str(value))}</td></tr>"
        for path, value in _leaves(manifest)
    )
    return f"<table>{rows}</table>"


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = dict(enumerate(value)).items()
    else:
        return [(path, value)]
    return [leaf for k, v in pairs for leaf in _leaves(v, f"{path}.{k}" if path else str(k))]
