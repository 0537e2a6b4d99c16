"""What no single key can tell: values that are possible alone and impossible together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hosts import wire
from hosts.driver import default_window
from testbed.scenario import graph
from testbed.scenario.errors import nearest
from testbed.scenario.reader import Reader
from testbed.scenario.schema import LANES_MAX, Scenario

P4_FOLDER = Path(__file__).resolve().parents[2] / "p4"
TENSORS_MAX_BYTES = 2**33
ETHERNET_BYTES = 14
IP_OVERHEAD_BYTES = wire.frame_bytes(0) - ETHERNET_BYTES

Finding = tuple[str, str, str]
"""Key path, what is wrong, what is allowed."""


def lanes_that_fit(mtu_bytes: int) -> int:
    """The most lanes that a packet of at most `mtu_bytes` (IP header counted) holds."""
    return min(LANES_MAX, (mtu_bytes - IP_OVERHEAD_BYTES) // wire.VALUE_BYTES)


def check(scenario: Scenario, reader: Reader) -> None:
    """Append to `reader.problems`; keys that were already found wrong are not judged again."""
    wrong = {problem.path for problem in reader.problems}
    for finder in (_lanes, _window, _tensors, _overrides):
        for path, what, allowed in finder(scenario):
            if not wrong & _READS[finder.__name__]:
                reader.problem(reader.place(path), path, what, allowed)


_READS = {
    "_lanes": {"switch.lanes", "links.mtu"},
    "_window": {"workload.window", "switch.slots"},
    "_tensors": {"workload.elements", "topology.workers"},
    "_overrides": {"topology.workers"},
}


def resolve(scenario: Scenario) -> Scenario:
    """`auto` replaced by what it stands for."""
    switch, workload = scenario.switch, scenario.workload
    lanes = switch.lanes or lanes_that_fit(scenario.links.mtu_bytes)
    ways = [way for link in graph.topology(scenario).links for _, _, _, way in link.directions()]
    slowest_bps = min(way.rate_bps or scenario.links.rate_bps for way in ways)
    window = workload.window or default_window(switch.slots, lanes, slowest_bps)
    return replace(
        scenario,
        switch=replace(switch, lanes=lanes),
        workload=replace(workload, window=window),
    )


def find_program(program: str, scenario_folder: Path) -> Path | None:
    """The .p4 file that `switch.program` means, or None."""
    candidates = [P4_FOLDER / f"{program}.p4"] if "/" not in program else []
    candidates += [scenario_folder / program, Path(program)]
    return next((path.resolve() for path in candidates if path.is_file()), None)


def program_problem(program: str) -> tuple[str, str]:
    """What is wrong with a program that was not found, and what is allowed."""
    known = sorted(path.stem for path in P4_FOLDER.glob("*.p4"))
    return (
        f"no such program '{program}'{nearest(program, known)}",
        f"{', '.join(known)} (from p4/), or the path of a .p4 file",
    )


def _lanes(scenario: Scenario) -> Iterator[Finding]:
    most = lanes_that_fit(scenario.links.mtu_bytes)
    lanes = scenario.switch.lanes
    if lanes is not None and lanes > most:
        what = f"{lanes} lanes do not fit an MTU of {scenario.links.mtu_bytes} bytes"
        yield "switch.lanes", what, f"at most {most}, or auto"


def _window(scenario: Scenario) -> Iterator[Finding]:
    window = scenario.workload.window
    if window is not None and window > scenario.switch.slots:
        what = f"a window of {window} chunks is more than the switch has slots"
        yield "workload.window", what, f"at most switch.slots, {scenario.switch.slots}"


def _tensors(scenario: Scenario) -> Iterator[Finding]:
    total = scenario.workload.elements * scenario.topology.workers * wire.VALUE_BYTES
    if total > TENSORS_MAX_BYTES:
        most = TENSORS_MAX_BYTES // (wire.VALUE_BYTES * scenario.topology.workers)
        what = f"the tensors of {scenario.topology.workers} workers need more than 8 GiB"
        yield "workload.elements", what, f"at most {most} for so many workers"


def _overrides(scenario: Scenario) -> Iterator[Finding]:
    built = graph.topology(replace(scenario, links=replace(scenario.links, overrides=())))
    for i, override in enumerate(scenario.links.overrides):
        if not graph.matches(override, built):
            names = ", ".join(link.name for link in built.links)
            what = f"'{override.match}' matches no link"
            yield f"links.overrides[{i}].match", what, f"{names}, or a pattern of them"
