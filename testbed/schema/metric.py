"""What a metric is: one value of metrics.json, which `expect:` may use."""

from __future__ import annotations

from dataclasses import dataclass, replace

NUMBER, FLAG, TEXT, LIST = "number", "flag", "text", "list"


@dataclass(frozen=True)
class Metric:
    """One value of metrics.json.

    path: the names that lead to it. `*` stands for one name: a worker's rank, a switch, a link, a
    direction or a process. kind: the type of its values. unit: that of a number; empty if it has
    none. meaning: empty if another metric's meaning tells it. measured: whether it is a time, a
    rate, or a ratio of such values, so that no two runs need have exactly the same value. Counts
    and computed bounds are not. counter: the attribute of a direction's counters
    (base/traffic_counters.py) that it is.
    """

    path: str
    kind: str
    unit: str
    meaning: str
    measured: bool = False
    counter: str = ""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    def below(self, prefix: str) -> Metric:
        """Returns the same metric with a longer path. Its meaning is told where it has the short
        one."""
        return replace(self, path=prefix + self.path, meaning="")


def counted(path: str, unit: str, meaning: str, counter: str = "") -> Metric:
    """Returns a count, or a number that is computed."""
    return Metric(path, NUMBER, unit, meaning, counter=counter)


def measured(path: str, unit: str, meaning: str) -> Metric:
    """Returns a time, a rate, or a ratio of such values."""
    return Metric(path, NUMBER, unit, meaning, measured=True)


def flag(path: str, meaning: str) -> Metric:
    return Metric(path, FLAG, "", meaning)


def text(path: str, meaning: str) -> Metric:
    return Metric(path, TEXT, "", meaning)


def items(path: str, meaning: str) -> Metric:
    """Returns a list, for which no expectation can be stated."""
    return Metric(path, LIST, "", meaning)
