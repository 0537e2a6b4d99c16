"""Writes charts into an HTML page: the specifications as data, and the script that draws them."""

from __future__ import annotations

from html import escape
from pathlib import Path

from agglab.testbed.report.specification import Spec, text_of
from agglab.testbed.report.vega import SCRIPT

DRAWING = Path(__file__).with_name("draw.js")
STYLE = """
figure.chart figcaption { font-weight: bold; } figure.chart .notes { font-weight: normal;
  font-size: 13px; margin: 0.2em 0; }
figure.chart .plot { width: 100%; min-height: 2em; overflow: hidden; }
figure.chart .plot .vega-bind { font-size: 13px; display: inline-block; margin-right: 1em; }
figure.chart .plot select { font: inherit; max-width: 85vw; }
figure.chart .about { font-size: 13px; margin: 0.2em 0; }
figure.chart details.numbers { font-size: 13px; overflow-x: auto; max-height: 30em; }
"""
HINT = "Drag a chart to move along its x axis, turn the wheel with Shift to zoom, and double-click \
to see all."
NO_SCRIPT = "Your browser runs no scripts, so this page has no charts. Their numbers are in the \
files that end in .vl.json."


def chart(spec: Spec, file: str = "") -> str:
    """Returns the HTML of a chart. file: the file of the same specification, to which the page
    links; empty if there is none."""
    about = spec["usermeta"]
    notes = "".join(f"<p class='notes'>{escape(note)}</p>" for note in about["notes"])
    link = escape(file, quote=True)
    named = f" <a href='{link}'>{link}</a>" if file else ""
    data = text_of(spec).replace("<", "\\u003c")
    return (
        f"<figure class='chart'><figcaption>{escape(about['title'])}{notes}</figcaption>"
        f"<div class='plot'></div><div class='about'>{named}</div>"
        f"<script type='application/json'>{data}</script></figure>"
    )


def hint() -> str:
    """Returns the HTML that stands once before the charts of a page."""
    return f"<p class='about'>{HINT}</p><noscript><p>{NO_SCRIPT}</p></noscript>"


def scripts(above: int) -> str:
    """Returns the HTML at the end of a page with charts. above: how many folders above the page the
    script file is."""
    return f"<script src='{'../' * above}{SCRIPT}'></script>\n{_drawing()}"


def whole_scripts(library: str) -> str:
    """Returns the same for a page that stands alone. library: the content of the script file; empty
    if there is none."""
    return f"<script>{library}</script>\n{_drawing()}"


def _drawing() -> str:
    return f"<style>{STYLE}</style>\n<script>{DRAWING.read_text(encoding='utf-8')}</script>"
