"""Tables as Markdown: for a terminal as they are, and as docs/systems/README.md with its text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill

from agglab.testbed.paths import REPOSITORY
from agglab.testbed.survey.cases import LOSS, Case
from agglab.testbed.survey.figures import Figures
from agglab.testbed.survey.measure import Row, Table, is_measured
from agglab.testbed.systems.base import System

WIDTH = 120
NOTHING = "-"
PAGES = REPOSITORY / "docs" / "systems"

COLUMNS: dict[str, tuple[str, Callable[[Case, Row], object]]] = {
    "time": (
        "of a round, from the first worker's start to the last one's end; the median of all rounds",
        lambda case, row: _ms(row.lossless.time_s),
    ),
    "x bound": (
        "that time over what the system's own bytes need on the busiest link, at its rate",
        lambda case, row: row.lossless.times_bound,
    ),
    "up": (
        "bytes from a worker to the switch in a round, headers counted; without a unit it is a "
        "multiple of the bytes of the worker's tensor",
        lambda case, row: _size(case, row.lossless, row.lossless.up_bytes),
    ),
    "down": (
        "the same, from the switch to a worker",
        lambda case, row: _size(case, row.lossless, row.lossless.down_bytes),
    ),
    "busiest link": (
        "the direction that carried most, and how much, likewise",
        lambda case, row: _busiest(case, row.lossless),
    ),
    "registers": (
        "bits that the switch's program keeps from packet to packet",
        lambda case, row: _bits(row.lossless.register_bits),
    ),
    "P4 lines": (
        "of code in the switch's program and what it includes; plain forwarding has some, too, as "
        "it checks whose frames it forwards",
        lambda case, row: row.lines,
    ),
    "packets": (
        "frames that workers and servers sent in a round, all together",
        lambda case, row: _count(row.lossless.sent),
    ),
    "exact": (
        "whether all that all workers received was right: integers that travelled to the bit, "
        "floats within the bound of their quantisation, or to the bit where hosts add them",
        lambda case, row: _flag(row.lossless.exact),
    ),
    "error": (
        "the largest distance of a result from a float64 sum, where floats travel as integers",
        lambda case, row: _small(row.lossless.error),
    ),
    f"time, {LOSS} loss": (
        f"of a round where each link drops {LOSS} of the packets in each direction",
        lambda case, row: _ms(row.lossy.time_s),
    ),
    "again": (
        f"frames of a round that were sent again, with {LOSS} loss",
        lambda case, row: _count(row.lossy.again),
    ),
    f"exact, {LOSS} loss": (
        f"as `exact`, with {LOSS} loss",
        lambda case, row: _flag(row.lossy.exact),
    ),
}
"""Head -> meaning, and the value."""


def page(systems: Sequence[System], tables: Sequence[Table], scenario: str) -> str:
    """docs/systems/README.md. systems: those to choose from; scenario: under all of the tables, as
    YAML."""
    return head(systems, scenario) + "".join(map(section, tables))


def head(systems: Sequence[System], scenario: str) -> str:
    """All that stands before the tables."""
    parts = [
        "# Systems\n",
        _filled(
            "A *system* is one way of aggregating: who sums, where, and what travels. This page is "
            "for a first choice among those that come with Agglab. It is written from runs: "
            "`agglab systems --measure --out docs/systems/README.md` makes it anew, in virtual "
            "time, so that the same code gives the same numbers on any machine. `--set` changes "
            "the scenario: `--set workload.elements=1_000_000`, `--set links.rate=1gbit`."
        ),
        "\n## How to choose\n",
        *map(_choice, systems),
        "\n## What is measured\n",
        _filled(
            "One rack: four workers and four more hosts, which only serve, on one switch. Every "
            "system has the same links, inputs and seed. Each run is this scenario with the "
            f"system's name and the keys of its table, and once more with `loss: {LOSS}`:"
        ),
        f"\n```yaml\n{scenario}```\n",
        *(_item(f"**{name}**: {meaning}.") for name, (meaning, _) in COLUMNS.items()),
        "\n"
        + _filled(
            "A dash is a number that a system does not have. Workloads that are made of the source "
            "text of Python's library, which is another in each version, are left out here; the "
            "command without `--out` shows them, too."
        ),
    ]
    return "\n".join(parts) + "\n"


def section(table: Table) -> str:
    """A table with its title and text, and why rows are broken."""
    case = table.case
    parts = [f"\n{title(case)}\n"]
    if case.about:
        parts.append(f"{_filled(case.about)}\n")
    asked = f"`--set {' --set '.join(case.asked)}`"
    parts += [f"{_filled(asked)}\n", markdown(table)]
    parts += ("\n" + _filled(f"{row.name}: {row.broken}") for row in table.rows if row.broken)
    return "\n".join(parts) + "\n"


def title(case: Case) -> str:
    """The heading of its section."""
    return f"## {case.title}"


def markdown(table: Table) -> str:
    """The table alone."""
    heads = ["system", *COLUMNS]
    lines = [heads, ["---"] * len(heads)]
    for row in table.rows:
        cells = (_shown(value(table.case, row)) for _, value in COLUMNS.values())
        lines.append([row.name, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _choice(system: System) -> str:
    own = PAGES / f"{system.name}.md"
    name = f"[{system.name}]({own.name})" if own.is_file() else system.name
    sentences = [f"**{name}**: {system.summary}.", system.choose_when]
    if not is_measured(system):
        sentences.append("It runs on real links alone, and so is in no table.")
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
    """A multiple of the tensor's bytes where the case has tensors."""
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
