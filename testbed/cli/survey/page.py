"""Writes tables as Markdown. They are shown on a terminal, or written to systems/README.md
together with the text of that page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill

from agglab.testbed.base.paths import REPOSITORY
from agglab.testbed.cli.survey.cases import LOSS, Case
from agglab.testbed.cli.survey.figures import Figures
from agglab.testbed.cli.survey.measure import Row, Table, is_measured
from agglab.testbed.systems.base import System

WIDTH = 120
NOTHING = "-"
PAGES = REPOSITORY / "systems"

COLUMNS: dict[str, tuple[str, Callable[[Case, Row], object]]] = {
    "time": (
        "time of a round, from the first worker's start to the last one's end: the median of "
        "all rounds",
        lambda case, row: _ms(row.lossless.time_s),
    ),
    "x bound": (
        "that time divided by the time that the system's own bytes need on the busiest link",
        lambda case, row: row.lossless.times_bound,
    ),
    "up": (
        "bytes that a worker sends to the switch in a round, with headers; a number without a "
        "unit is a multiple of the size of the worker's tensor",
        lambda case, row: _size(case, row.lossless, row.lossless.up_bytes),
    ),
    "down": (
        "bytes that the switch sends to a worker in a round, in the same unit",
        lambda case, row: _size(case, row.lossless, row.lossless.down_bytes),
    ),
    "busiest link": (
        "the direction that carried the most bytes, and how many bytes, in the same unit",
        lambda case, row: _busiest(case, row.lossless),
    ),
    "registers": (
        "bits of state that the switch's program keeps between packets",
        lambda case, row: _bits(row.lossless.register_bits),
    ),
    "P4 lines": (
        "lines of code of the switch's program and its includes; plain forwarding also has "
        "some, because it checks the source of the frames it forwards",
        lambda case, row: row.lines,
    ),
    "packets": (
        "frames that all workers and servers sent in a round",
        lambda case, row: _count(row.lossless.sent),
    ),
    "exact": (
        "whether everything that all workers received was right: integers bit for bit, floats "
        "within the bound of their quantisation, or bit for bit where hosts add them",
        lambda case, row: _flag(row.lossless.exact),
    ),
    "error": (
        "the largest distance of a result from a float64 sum, where floats travel as integers",
        lambda case, row: _small(row.lossless.error),
    ),
    f"time, {LOSS} loss": (
        f"time of a round if each link drops {LOSS} of the packets in each direction",
        lambda case, row: _ms(row.lossy.time_s),
    ),
    "again": (
        f"frames that were sent again in a round, with {LOSS} loss",
        lambda case, row: _count(row.lossy.again),
    ),
    f"exact, {LOSS} loss": (
        f"the same as `exact`, with {LOSS} loss",
        lambda case, row: _flag(row.lossy.exact),
    ),
}
"""The meaning of each column, and the function that returns its value, by the column's heading."""


def page(systems: Sequence[System], tables: Sequence[Table], scenario: str) -> str:
    """Returns the text of systems/README.md. systems: the systems that the page lists for its
    reader to choose from. scenario: the scenario on which all tables are based, as YAML."""
    return head(systems, scenario) + "".join(map(section, tables))


def head(systems: Sequence[System], scenario: str) -> str:
    """Returns the text before the tables."""
    parts = [
        "# Systems\n",
        _filled(
            "A *system* is one way of aggregating: it says who sums, where, and what travels. "
            "This page helps you to choose among the systems that come with Agglab. Its "
            "numbers come from runs in virtual time, so the same code gives the same numbers "
            "on any machine: `./agglab systems --measure --out systems/README.md` writes it "
            "again. The command's option `--set` changes the scenario, as in `--set "
            "workload.elements=1_000_000` or `--set links.rate=1gbit`."
        ),
        "\n## How to choose\n",
        *map(_choice, systems),
        "\n## What is measured\n",
        _filled(
            "The network is one rack: four workers, and four more hosts for servers, on one "
            "switch. Every system has the same links, inputs and seed. Each run is this "
            "scenario with the system's name and the keys of its table; it is repeated with "
            f"`loss: {LOSS}`:"
        ),
        f"\n```yaml\n{scenario}```\n",
        *(_item(f"**{name}**: {meaning}.") for name, (meaning, _) in COLUMNS.items()),
        "\n"
        + _filled(
            "A dash stands for a number that a system does not have. Workloads made from the "
            "source text of Python's library differ between versions of Python, so they are "
            "not on this page; the command without `--out` shows them as well."
        ),
    ]
    return "\n".join(parts) + "\n"


def section(table: Table) -> str:
    """Returns a table with its title and text, and the reasons why rows are incomplete."""
    case = table.case
    parts = [f"\n{title(case)}\n"]
    if case.about:
        parts.append(f"{_filled(case.about)}\n")
    asked = f"`--set {' --set '.join(case.asked)}`"
    parts += [f"{_filled(asked)}\n", markdown(table)]
    parts += ("\n" + _filled(f"{row.name}: {row.broken}") for row in table.rows if row.broken)
    return "\n".join(parts) + "\n"


def title(case: Case) -> str:
    """Returns the heading of the case's section."""
    return f"## {case.title}"


def markdown(table: Table) -> str:
    """Returns the table without its title and text."""
    heads = ["system", *COLUMNS]
    lines = [heads, ["---"] * len(heads)]
    for row in table.rows:
        cells = (_shown(value(table.case, row)) for _, value in COLUMNS.values())
        lines.append([row.name, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _choice(system: System) -> str:
    own = f"{system.name}/README.md"
    name = f"[{system.name}]({own})" if (PAGES / own).is_file() else system.name
    sentences = [f"**{name}**: {system.summary}.", system.choose_when]
    if not is_measured(system):
        sentences.append("It runs only on real links, so it is in no table.")
    return _item(" ".join(filter(None, sentences)))


def _filled(text: str) -> str:
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _item(text: str) -> str:
    return fill(
        text,
        WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _shown(value: object) -> str:
    if value is None:
        return NOTHING
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _ms(time_s: float | None) -> str | None:
    return None if time_s is None else f"{time_s * 1e3:.1f} ms"


def _size(case: Case, run: Figures, size_bytes: float | None) -> object:
    """Returns the bytes as a multiple of the tensor's size if the case shows tensors, otherwise as
    bytes."""
    if size_bytes is None:
        return None
    return size_bytes / run.tensor_bytes if case.in_tensors else f"{size_bytes / 1e3:.1f} kB"


def _busiest(case: Case, run: Figures) -> str | None:
    if run.busiest is None:
        return None
    return f"{run.busiest.direction} {_shown(_size(case, run, run.busiest.size_bytes))}"


def _bits(bits: int | None) -> str | None:
    if bits is None:
        return None
    return (
        f"{bits / 1e6:.2f} Mbit" if bits >= 100_000 else f"{bits / 1e3:.1f} kbit" if bits else "0"
    )


def _count(packets: float | None) -> str | None:
    return None if packets is None else f"{packets:.0f}"


def _flag(flag: bool | None) -> str | None:
    return None if flag is None else "yes" if flag else "NO"


def _small(value: float | None) -> str | None:
    return None if value is None else f"{value:.1e}"
