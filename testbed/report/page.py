"""Writes report.html, which needs no network. Its only scripts are those of its charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.parse import quote

from agglab.testbed.base.paths import IS_CHECKOUT
from agglab.testbed.judge.collectives import NOT_AGGREGATED, WAYS, calls_of
from agglab.testbed.judge.fidelity import OF_THE_MACHINE
from agglab.testbed.judge.verdicts import verdict_of
from agglab.testbed.report import answers, embedding, headline_times
from agglab.testbed.report.chart_files import Figure
from agglab.testbed.report.expected import Judged, judged
from agglab.testbed.report.figures import anything_again
from agglab.testbed.report.losses import Loss, losses
from agglab.testbed.report.network import NAME as TOPOLOGY
from agglab.testbed.report.specification import Spec
from agglab.testbed.report.spread import counters
from agglab.testbed.report.style import STYLE
from agglab.testbed.report.tables import cell, shown, table
from agglab.testbed.results.counts import AGENT_COUNTS
from agglab.testbed.results.metric_values import lookup
from agglab.testbed.results.recorded_scenario import RecordedScenario
from agglab.testbed.results.side_by_side import (
    OfSeveral,
    busiest,
    reason_lines,
    runs_of,
    warning_lines,
)
from agglab.testbed.scenario.workloads import judged_time
from agglab.testbed.scenario.workloads.judged_time import ROUND, Headline

Metrics = Mapping[str, Any]
GENERAL_COUNTS = frozenset((*AGENT_COUNTS, "cpu_s"))
"""The counters that the workers of every system have."""
WHERE = ", in the folder of Agglab" if IS_CHECKOUT else ""
PLURAL = {"switch": "switches"}
PLACES_MAX = 16
"""Of the places that lost packets, the page shows at most this many."""
CELLS_SHOWN = 16
"""Of a register, the page shows at most this many values."""
LISTED_MAX = 16
"""Of a list in the manifest, the page shows at most this many values."""


@dataclass(frozen=True)
class Content:
    """The parts of a page. name: the scenario's name; for one of several runs, also the name of the
    run. command: the arguments with which `agglab run` repeats the run. logs: files to which the
    page links, relative to the folder. chosen: the charts for which the reader chooses the metric.
    above: how many folders above the page the scripts of charts are. held: the contents of
    program.json; empty if there are none."""

    name: str
    command: str
    metrics: Metrics
    figures: Sequence[Figure]
    recorded: RecordedScenario
    manifest: Metrics
    logs: Sequence[str] = ()
    chosen: Sequence[Spec] = ()
    above: int = 0
    held: Metrics = field(default_factory=dict)


def page(content: Content) -> str:
    """Returns the report of one folder."""
    metrics = content.metrics
    body = [_header(content.name, metrics, content.manifest)]
    expected = judged(content.recorded, metrics)
    if "points" in metrics or "contenders" in metrics:
        body += _of_several(metrics, expected)
    elif "totals" in metrics:
        body += _of_one(content, expected)
    plain = [each for each in content.figures if each.name != TOPOLOGY and not each.kind]
    over_time = _over_time(content.figures)
    body += [embedding.hint()] if plain or over_time or content.chosen else []
    body += [embedding.chart(spec) for spec in content.chosen]
    body += [_figure(figure) for figure in plain]
    body += over_time
    if "totals" in metrics:
        body += _counters(metrics)
        body += _registers(content.held)
    body += _logs(content.logs)
    body.append(_section("Scenario as resolved", f"<pre>{escape(content.recorded.text)}</pre>"))
    body.append(_section("Manifest", _manifest(content.manifest)))
    if content.figures:
        body.append(embedding.scripts(content.above))
    return _document(content.name, "\n".join(body))


def _of_several(metrics: Metrics, expected: Sequence[Judged]) -> list[str]:
    runs = runs_of(metrics)
    held = sum(bool(run.metrics["ok"]) for run in runs)
    answer = f"<p>In {held} of {len(runs)} runs, every expectation holds.</p>"
    return [
        _section("Runs", answer + _runs(runs) + _growth(metrics)),
        *_expected(expected),
    ]


def _of_one(content: Content, expected: Sequence[Judged]) -> list[str]:
    metrics, recorded = content.metrics, content.recorded
    lost = losses(metrics)
    found = {
        "What was asked": answers.was_asked(recorded, metrics)
        if recorded.tree
        else "The scenario is missing.",
        "Did it hold?": answers.did_it_hold(metrics, expected),
        "What limited it?": answers.what_limited(metrics),
        "Where were packets lost?": answers.where_lost(lost),
    }
    pairs = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in found.items())
    runs = "".join(
        f"<li><code>{escape(each.command)}</code>: {escape(each.why)}</li>"
        for each in answers.next_runs(content.command, metrics, recorded)
    )
    following = f"<dt>What to run next{WHERE}</dt><dd><ul>{runs}</ul></dd>" if runs else ""
    topology = (figure for figure in content.figures if figure.name == TOPOLOGY)
    return [
        f"<dl class='answers'>{pairs}{following}</dl>",
        *_expected(expected),
        *(_figure(figure) for figure in topology),
        *_lost(lost),
        _section("Result", _facts(metrics)),
        *_several(metrics),
        *_where_calls_went(metrics),
        *_predicted(metrics),
    ]


def _expected(expected: Sequence[Judged]) -> list[str]:
    if not expected:
        return []
    rows = {
        each.metric: {
            "expected": each.wanted,
            "measured": each.got,
            "verdict": "holds" if each.holds else "failed",
        }
        for each in expected
    }
    return [_section("Expected and measured", table("metric", rows))]


def _lost(lost: Sequence[Loss]) -> list[str]:
    rows = {
        f"{number}. {loss.where}": {
            "packets": loss.packets,
            "of": loss.of,
            "share": f"{loss.packets / loss.of:.3%}" if loss.of else None,
            "why": loss.why,
        }
        for number, loss in enumerate(lost[:PLACES_MAX], start=1)
    }
    rest = lost[PLACES_MAX:]
    text = table("where", rows) + (f"<p>{_other_places(rest)}</p>" if rest else "")
    return [_section("Where packets were lost, and why", text)] if rows else []


def _other_places(lost: Sequence[Loss]) -> str:
    packets = sum(loss.packets for loss in lost)
    return f"{packets:,} further packets were lost at {len(lost):,} other places."


def _predicted(metrics: Metrics) -> list[str]:
    """Returns a table of the bytes that the scenario predicts and those that were counted."""
    rows = {
        name: {
            "predicted, nothing sent again": way["predicted_bytes"],
            "measured": way["bytes"],
            "more": way["bytes"] - way["predicted_bytes"],
        }
        for name, way in _ways(metrics["links"]).items()
        if way.get("predicted_bytes") is not None
    }
    if not rows:
        return []
    agree = metrics["links_as_predicted"]
    said = {
        True: "Every direction carried exactly the predicted bytes and those that were sent again.",
        False: f"Not as predicted: {metrics.get('links_unclear', '')}.",
    }.get(agree, f"The bytes were not compared: {metrics.get('links_unclear', '')}")
    return [
        _section(
            "Bytes, predicted and measured", f"<p>{escape(said)}</p>{counters('direction', rows)}"
        )
    ]


def _counters(metrics: Metrics) -> list[str]:
    body = []
    if not anything_again(metrics):
        body.append("<p>No worker sent or received anything twice.</p>")
    for job, own in metrics["jobs"].items():
        title = "Workers" if len(metrics["jobs"]) == 1 else f"Workers of {job}"
        body.append(_section(title, _workers(own["workers"])))
    body.append(_section("Switches", counters("switch", _flat_switches(metrics["switches"]))))
    if own := {name: s["program"] for name, s in metrics["switches"].items() if s.get("program")}:
        body.append(_section("Counters of the P4 program's own", counters("switch", own)))
    body.append(_section("Links", counters("direction", _ways(metrics["links"]))))
    return body


def _registers(held: Metrics) -> list[str]:
    """Returns a table of the registers that the scenario asks for, as they were at the end of the
    run."""
    rows = {
        f"{name} of {switch}": _register(register)
        for switch, state in held.items()
        for name, register in state["registers"].items()
    }
    title = "Registers at the end of the run"
    return [_section(title, table("register", rows))] if rows else []


def _register(register: Metrics | None) -> Metrics:
    """Returns the row of a register; dashes if it could not be read."""
    if register is None:
        return dict.fromkeys(("cells", "not 0", "first values"))
    cells, values = register["cells"], register["not_zero"]
    first = [str(values.get(str(cell), 0)) for cell in range(min(cells, CELLS_SHOWN))]
    more = " ..." if cells > CELLS_SHOWN else ""
    return {"cells": cells, "not 0": len(values), "first values": ", ".join(first) + more}


def _workers(workers: Mapping[str, Metrics]) -> str:
    """Returns the counters of a job's workers: a table of those that every system has, and below it
    one of the system's own, unless they are all zero."""
    general = {name: _only(counts, GENERAL_COUNTS) for name, counts in workers.items()}
    own = {name: _only(counts, counts.keys() - GENERAL_COUNTS) for name, counts in workers.items()}
    tables = [general, own] if any(any(counts.values()) for counts in own.values()) else [general]
    return "".join(counters("worker", rows) for rows in tables)


def _only(counts: Metrics, names: Set[str]) -> Metrics:
    return {name: value for name, value in counts.items() if name in names}


def _over_time(figures: Sequence[Figure]) -> list[str]:
    """Returns a foldable part of the page for each kind of thing that has figures over time. At
    first, only the part of the jobs is unfolded."""
    parts = []
    for kind in dict.fromkeys(figure.kind for figure in figures if figure.kind):
        own = "".join(_figure(figure) for figure in figures if figure.kind == kind)
        opened = " open" if kind == "job" else ""
        title = PLURAL.get(kind, f"{kind}s").capitalize()
        parts.append(f"<details{opened}><summary>{title}</summary>{own}</details>")
    return [_section("Over time", "".join(parts))] if parts else []


def _figure(figure: Figure) -> str:
    return embedding.chart(figure.spec, figure.file)


def _logs(logs: Sequence[str]) -> list[str]:
    """Returns links to the files beside the report."""
    if not logs:
        return []
    items = "".join(
        f"<li><a href='{escape(quote(path), quote=True)}'>{escape(path)}</a></li>" for path in logs
    )
    return [_section("Files and logs", f"<ul>{items}</ul>")]


def _document(title: str, body: str) -> str:
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _header(name: str, metrics: Metrics, manifest: Metrics) -> str:
    kind = verdict_of(metrics)
    warnings = [f"Warning: {text}" for text in warning_lines(metrics)]
    lines = [*reason_lines(metrics), *_not_aggregated(metrics), *warnings]
    said = "".join(f"<p>{escape(text)}</p>" for text in lines)
    started = escape(str(manifest.get("started", "")))
    badge = f"<span class='verdict {kind}'>{kind}</span>"
    for verdict in dict.fromkeys(_verdicts(metrics)):
        if verdict in OF_THE_MACHINE:
            badge += f" <span class='verdict limited'>{escape(verdict)}</span>"
    return (
        f"<h1>{escape(name)} {badge}</h1>"
        f"<p>{started}, seed {escape(str(manifest.get('seed', '')))}</p>{said}"
    )


def _not_aggregated(metrics: Metrics) -> list[str]:
    """Returns the findings that the system did not sum, unless the reason says so already."""
    found = [each for each in metrics.get("findings", ()) if each["kind"] == NOT_AGGREGATED]
    lines = [f"{each['kind']}: {each['text']}" for each in found]
    return [line for line in lines if line not in metrics["reason"]]


def _verdicts(metrics: Metrics) -> list[str]:
    """Returns the fidelity verdict of the run or, of several runs, those of all completed ones."""
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
        f"<tr><td>{escape(name)}</td>{cell(name, value)}</tr>" for name, value in facts.items()
    )
    failure = metrics["failure"]
    failed = f"<p>Failure: {escape(failure['reason'])}</p>" if failure else ""
    reasons = _items(metrics["fidelity"]["reasons"])
    failed += _kinds_and_texts("Findings", metrics["findings"])
    failed += _kinds_and_texts("Doubts", metrics.get("doubts", ()))
    limits = [text for job in metrics["jobs"].values() for text in job.get("gain_limits", ())]
    failed += f"<p>What limits the gain:</p><ul>{_items(limits)}</ul>" if limits else ""
    evidence = f"<p>Fidelity, the evidence:</p><ul>{reasons}</ul>"
    return f"<table class='facts'>{rows}</table>{failed}{evidence}"


def _items(texts: Sequence[str]) -> str:
    return "".join(f"<li>{escape(text)}</li>" for text in texts)


def _job_facts(job: Metrics) -> dict[str, Any]:
    chief = judged_time.headline(job)
    own_time = {f"median time of a {chief.of} (s)": lookup(job, chief.metric)}
    return {
        **(own_time if chief != ROUND else {}),
        "rounds": job["rounds"],
        "largest float error": job["error"]["max_abs"],
        "allowed float error": job["error"]["bound"],
        "median time of a round (s)": job["allreduce"]["time_s"]["median"],
        "link bound (s)": job["link_bound_s"],
        "time / link bound": job["link_bound_ratio"],
        "bound given the losses (s)": job["lossy_bound_s"],
        "time / bound given the losses": job["lossy_bound_ratio"],
        "aggregated elements per second": job["allreduce"]["ate_per_s"],
        "rounds repeated": job["restarts"],
        "workers lost": ", ".join(job["lost_workers"]) or 0,
    }


def _several(metrics: Metrics) -> list[str]:
    """Returns a table of the jobs, if there are several."""
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
    jain = f"<p>Jain index of the jobs: {escape(shown(metrics['fairness']['jain']))}</p>"
    return [_section("Jobs", table("job", rows) + jain)]


def _kinds_and_texts(title: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """Returns a list of findings or doubts as HTML; empty if there are none."""
    items = "".join(f"<li>{escape(e['kind'])}: {escape(e['text'])}</li>" for e in entries)
    return f"<p>{title}:</p><ul>{items}</ul>" if items else ""


def _runs(runs: Sequence[OfSeveral]) -> str:
    rows, chief = {}, headline_times.common(run.metrics for run in runs)
    for run in runs:
        label = ": ".join(part for part in (run.point, run.contender) if part)
        href = escape(f"{run.folder}/report.html", quote=True)
        rows[f"<a href='{href}'>{escape(label)}</a>"] = _run(run, runs, chief)
    return table("run", rows, escaped=True)


def _where_calls_went(metrics: Metrics) -> list[str]:
    """Returns a table of the collectives of each job with a training script."""
    sections = []
    for name, job in metrics["jobs"].items():
        rows = {
            f"{number}. {each.collective}": {
                "way": WAYS[each.way],
                "calls": each.calls,
                "bytes": each.size_bytes,
            }
            for number, each in enumerate(calls_of(job), start=1)
        }
        if rows:
            sections.append(_section(f"What went where ({name})", table("collective", rows)))
    return sections


def _run(run: OfSeveral, runs: Sequence[OfSeveral], chief: Headline) -> dict[str, Any]:
    """Returns the table cells of one of several runs. chief: what the times of all runs are those
    of. If a run has several jobs, its time is that of the slowest. A run that was aborted has only
    a reason."""
    metrics = run.metrics
    return {
        "verdict": verdict_of(metrics),
        "sums exact": metrics.get("exact"),
        "wrong results": metrics.get("wrong_results"),
        "fidelity": lookup(metrics, "fidelity.verdict"),
        f"median time of a {chief.of} (s)": headline_times.time_s(metrics, chief),
        **(_compared(run, headline_times.times_first(run, runs, chief)) if run.contender else {}),
        **({"ratio": metrics.get("link_bound_ratio")} if chief == ROUND else {}),
        "why it did not pass": metrics["reason"] or lookup(metrics, "failure.reason") or "",
    }


def _compared(run: OfSeveral, times_first: float | None) -> dict[str, Any]:
    """Returns how a contender's time and bytes compare with those of the first contender."""
    carried = busiest(run.metrics)
    return {
        f"times {run.first}": times_first,
        "in paired rounds": "" if run.spread is None else "{:.3g} to {:.3g}".format(*run.spread),
        "link bound (s)": run.metrics.get("link_bound_s"),
        "busiest link": "" if carried is None else f"{carried[0]} {carried[1] / 1e6:.3g} MB",
    }


def _growth(metrics: Metrics) -> str:
    """Returns what was expected to grow from the first point to the last, and how many runs did not
    measure the network."""
    rows = [
        f"<li>growth of {escape(path)}: {escape(shown(value))}</li>"
        for path, value in metrics.get("growth", {}).items()
    ]
    other = sum(verdict in OF_THE_MACHINE for verdict in _verdicts(metrics))
    if other:
        count = f"{other} of {len(runs_of(metrics))} runs"
        rows.append(f"<li>{count} did not measure the network: see the column fidelity</li>")
    return f"<ul>{''.join(rows)}</ul>" if rows else ""


NOT_IN_TABLE = ("packets", "jobs", "program", "register_bits")
"""The metrics of a switch that its row in the table of all switches does not have."""


def _flat_switches(switches: Metrics) -> dict[str, dict[str, Any]]:
    return {
        name: {
            **switch["packets"],
            **{k: v for k, v in switch.items() if k not in NOT_IN_TABLE},
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
    elif isinstance(value, list) and any(isinstance(each, (Mapping, list)) for each in value):
        pairs = dict(enumerate(value)).items()
    elif isinstance(value, list):
        return [(path, _listed(value))]
    else:
        return [(path, value)]
    return [leaf for k, v in pairs for leaf in _leaves(v, f"{path}.{k}" if path else str(k))]


def _listed(values: Sequence[Any]) -> str:
    """Returns values in one line, and of many only the first ones."""
    shown_values = ", ".join(str(value) for value in values[:LISTED_MAX])
    rest = len(values) - LISTED_MAX
    return f"{shown_values}, and {rest:,} more" if rest > 0 else shown_values
