"""systems/netrpc/README.md: its table of lines is counted, not typed; each application is short."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "systems/netrpc/README.md"
SERVICES = ROOT / "systems/netrpc/services"
APPLICATIONS = ("allreduce", "wordcount", "lock")
MOST = 60
STALE = 0.05
"""The share by which a count of the page may differ from today's, so that not every change of a
worker is a change of this page."""
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
HOSTS = {
    "netrpc": (
        *("caller", "endpoint", "key_places", "map_operation", "operations", "server", "service"),
        *("state", "stubs", "wire", "worker"),
    ),
    "omnireduce": ("endpoint", "state", "wire", "worker"),
    "ps": ("agents", "endpoint", "state", "wire"),
    "ring": ("endpoint", "state", "wire", "worker"),
}
"""The modules of systems that run at hosts."""


def at_hosts(system: str) -> list[str]:
    modules = [f"systems/{system}/{name}.py" for name in HOSTS[system]]
    return [*modules, f"systems/{system}/*.[ch]"]


PARTS = {
    **{
        f"the application `{name}`": [f"systems/netrpc/services/{name}.py"] for name in APPLICATIONS
    },
    "what all services share: the program": ["p4/netrpc.p4", "p4/include/pairs.p4"],
    "what all services share: hosts": at_hosts("netrpc"),
    "`switchml`: program and worker": [
        "p4/switchml.p4",
        *(f"p4/include/{name}.p4" for name in ("sender", "aggregation", "sums", "switchml_egress")),
        "systems/switchml/worker.*",
        "systems/switchml/state.py",
    ],
    "`omnireduce`: program and worker": ["p4/omnireduce.p4", *at_hosts("omnireduce")],
    "`ps`: worker and server": at_hosts("ps"),
    "`ring`: worker": at_hosts("ring"),
}


def of_python(text: str) -> int:
    """Lines with code: no blank ones, comments or docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(lines - {text.count("\n") + 1})


def of_c(text: str) -> int:
    """The same of C and P4."""
    bare = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    return sum(bool(line.split("//")[0].strip()) for line in bare.splitlines())


def count(patterns: Iterable[str]) -> int:
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern)) if path.is_file()]
    assert found, patterns
    total = 0
    for path in found:
        total += (of_python if path.suffix == ".py" else of_c)(path.read_text())
    return total


def counts() -> dict[str, int]:
    return {what: count(patterns) for what, patterns in PARTS.items()}


def table() -> str:
    rows = [f"| {what} | {lines} |" for what, lines in counts().items()]
    return "\n".join(["| part | lines |", "|---|---|", *rows])


def on_page(text: str) -> dict[str, int]:
    """The rows of the page's table of lines."""
    begun = re.search(r"<!-- lines: [^\n]* -->\n(.*?)<!-- end -->", text, flags=re.DOTALL)
    assert begun, "the page has no table of lines"
    return {what: int(lines) for what, lines in re.findall(r"\| (.*?) \| (\d+) \|", begun[1])}


def test_the_golden_table_of_lines() -> None:
    text = PAGE.read_text()
    if os.environ.get("BLESS"):
        pattern = r"(<!-- lines: [^\n]* -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda m: m[1] + table() + "\n" + m[2], text, flags=re.DOTALL)
        PAGE.write_text(text)
    assert list(on_page(text)) == list(PARTS)
    off = {what: (on_page(text)[what], now) for what, now in counts().items()}
    stale = {what: both for what, both in off.items() if abs(both[0] - both[1]) > STALE * both[1]}
    assert not stale, "`make bless` counts the lines anew"


@pytest.mark.parametrize("name", sorted(path.stem for path in SERVICES.glob("[!_]*.py")))
def test_each_application_has_fewer_than_60_lines(name: str) -> None:
    assert name in APPLICATIONS
    assert len((SERVICES / f"{name}.py").read_text().splitlines()) < MOST


def test_what_counts_as_a_line() -> None:
    assert of_python('"""Text.\n\nMore."""\n\nx = 1  # one\n# none\ny = """a\nb"""\n') == 3
    assert of_c("/* a\n * b */\nint x; // c\n// d\n\nint y;\n") == 2
