"""The costs of Agglab's switch other than forwarding packets: library calls, compile time, tables,
memory, and the load of an idle switch.

Unless a row says otherwise, the program is the aggregation program (lab.aggregation) with 256
lanes.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agglab.testbed import systems
from agglab.verification import programs
from benchmarks import lab
from benchmarks.row import Goal, Row
from p4native.switch import Exact, Lpm, Match, Pipeline, Range, Ternary

LANES = 256
CALLS = 20_000
FEW, MANY = 10, 100_000
REPEATS = 3
SETTLE_S, IDLE_S = 1.0, 3.0
SIXTEEN = """
name: sixteen-switches
description: sixteen switches and sixty-four hosts
seed: 1
topology: {kind: leaf_spine, racks: 8, spines: 8, workers: 8}
links: {rate: 100mbit}
switch: {lanes: 256, slots: 64}
workload: {elements: 4096, dtype: int32, rounds: 1}
timeouts: {round: 120s}
expect: {exact: true}
"""


def run() -> list[Row]:
    """Runs the benchmarks, which takes about a minute, and returns their rows. Raises RuntimeError
    with a message that names what the machine lacks."""
    with tempfile.TemporaryDirectory(prefix="agglab-bench-") as folder:
        rows = [_calls(), *_compile_times(Path(folder)), *_tables(Path(folder))]
        lab.need_root()
        tools = lab.build_tools(Path(folder))
        with lab.Lab(Path(folder), tools) as place:
            rows += _at_rest(place)
        rows.append(_many_switches(Path(folder)))
    return rows


def _calls() -> Row:
    """Measures the calls that process a packet of no job: the packet is parsed, looked up, counted
    and dropped."""
    with Pipeline.load(lab.aggregation("agglab", LANES).json) as pipeline:
        frame = bytes(54 + 4 * LANES)
        seconds = min(_seconds_of_calls(pipeline, frame) for _ in range(REPEATS))
    return Row("library", "Pipeline.process", CALLS / seconds, "calls/s")


def _seconds_of_calls(pipeline: Pipeline, frame: bytes) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        pipeline.process(1, frame)
    return time.perf_counter() - start


def _compile_times(folder: Path) -> Iterator[Row]:
    """Measures the time from the P4 text to the loaded shared object, with an empty cache and with
    a filled one. Each measurement is made in a separate process."""
    cold = _compile_and_load(folder / "cold")
    lab.aggregation("agglab", LANES)
    _load_cached()
    cached = min(_load_cached() for _ in range(REPEATS))
    goal = Goal(5.0, most=True, of_value=True)
    yield Row("compile", "cold, P4 to loaded code", cold, "s", goal=goal)
    goal = Goal(0.3, most=True, of_value=True)
    yield Row("compile", "cached", cached, "s", "cold", cached / cold, goal)


def _compile_and_load(folder: Path) -> float:
    folder.mkdir()
    output = str(folder / "program.json")
    source = programs.path(systems.default())
    compiler = [sys.executable, "-m", "p4native.compiler", str(source), f"-DLANES={LANES}"]
    compiler += ["-o", output, "--p4runtime-files", str(folder / "program.p4info.txtpb")]
    load = "import sys; from p4native.switch import Pipeline; Pipeline.load(sys.argv[1])"
    environment = {**os.environ, "P4NATIVE_CACHE": str(folder)}
    start = time.perf_counter()
    subprocess.run(compiler, cwd=lab.ROOT, check=True)
    subprocess.run([sys.executable, "-c", load, output], cwd=lab.ROOT, env=environment, check=True)
    return time.perf_counter() - start


def _load_cached() -> float:
    """Returns the seconds that loading a program from the cache takes in a new process, without the
    start of the process."""
    program = (
        "import time; from benchmarks import lab; from p4native.switch import Pipeline;"
        " start = time.perf_counter();"
        f" Pipeline.load(lab.aggregation('agglab', {LANES}).json);"
        " print(time.perf_counter() - start)"
    )
    done = subprocess.check_output([sys.executable, "-c", program], cwd=lab.ROOT)
    return float(done)


def _tables(folder: Path) -> Iterator[Row]:
    """Measures, for each kind of table entry, the cost of adding an entry and the cost of a packet
    that matches one. Compares both with the costs in a table of few entries."""
    output = folder / "tables.json"
    command = [
        sys.executable,
        "-m",
        "p4native.compiler",
        str(lab.SOURCES / "tables.p4"),
        "-o",
        str(output),
    ]
    subprocess.run(command, cwd=lab.ROOT, check=True)
    for kind in ("exact", "lpm", "ternary", "range"):
        few_add, few_packet = _table_costs(output, kind, FEW)
        add, packet = _table_costs(output, kind, MANY)
        what = f"{kind}, {MANY:,} entries: "
        few = f"{FEW} entries"
        yield Row("tables", what + "add one", add * 1e6, "us", few, add / few_add)
        yield Row("tables", what + "a packet", packet * 1e6, "us", few, packet / few_packet)


def _table_costs(program: Path, kind: str, count: int) -> tuple[float, float]:
    """Returns the seconds of processor time to add an entry, and to process a packet that matches
    an entry."""
    rng = random.Random(kind)
    drawn = [_entry(rng, kind, number) for number in range(count)]
    with Pipeline.load(program) as pipeline:
        start = time.process_time()
        for number, (match, _) in enumerate(drawn):
            pipeline.tables.add(f"Work.{kind}_", match, "Work.forward", [2], number)
        added = time.process_time() - start
        number = ("exact", "lpm", "ternary", "range").index(kind)
        frames = [bytes([number]) + rng.choice(drawn)[1] + bytes(50) for _ in range(CALLS // 4)]
        start = time.process_time()
        for frame in frames:
            assert pipeline.process(1, frame)
        return added / count, (time.process_time() - start) / len(frames)


def _entry(rng: random.Random, kind: str, number: int) -> tuple[list[Match], bytes]:
    """Returns a table entry that differs from all others by `number`, and a key of 48 bits that it
    matches."""
    value = number << 16 | rng.getrandbits(16)
    match: Match = Exact(value)
    if kind == "lpm":
        match = Lpm(value >> 8 << 8, 40)
    elif kind == "ternary":
        mask = rng.choice((0xFFFFFFFFFFFF, 0xFFFFFFFFFF00, 0xFFFFFFFF0000, 0xFFFFFFFF00FF))
        match = Ternary(value & mask, mask)
    elif kind == "range":
        match = Range(value, value + rng.randrange(0xFFFF - (value & 0xFFFF) + 1))
    return [match], value.to_bytes(6, "big")


def _at_rest(place: lab.Lab) -> Iterator[Row]:
    """Measures the processor time and the memory of a switch without traffic. It has four ports, a
    control plane, and its table entries."""
    with lab.native_process(place, lab.aggregation("agglab", LANES)) as process:
        time.sleep(SETTLE_S)
        before = _cpu_ns(process.pid)
        time.sleep(IDLE_S)
        idle = (_cpu_ns(process.pid) - before) / (IDLE_S * 1e9)
        memory = _resident_bytes(process.pid)
    goal = Goal(0.5, most=True, of_value=True)
    yield Row("rest", "idle switch, processor", 100 * idle, "%", goal=goal)
    goal = Goal(100.0, most=True, of_value=True)
    yield Row("rest", "switch process, memory", memory / 1e6, "MB", goal=goal)


def _cpu_ns(pid: int) -> int:
    """Returns the processor time that all threads of a process have used."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _many_switches(folder: Path) -> Row:
    """Measures the time from the start of the command until all 64 hosts of a run with 16 switches
    are ready. The P4 program has been compiled before."""
    scenario = folder / "sixteen.yaml"
    scenario.write_text(SIXTEEN)
    seconds = statistics.median(_seconds_to_ready(scenario, folder) for _ in range(REPEATS))
    goal = Goal(15.0, most=True, of_value=True)
    return Row("start", "16 switches, 64 hosts: all ready", seconds, "s", goal=goal)


def _seconds_to_ready(scenario: Path, folder: Path) -> float:
    results = folder / "results"
    command = [
        sys.executable,
        "-m",
        "agglab.testbed",
        "run",
        str(scenario),
        "--results",
        str(results),
    ]
    start_ns = time.monotonic_ns()
    done = subprocess.run(command, cwd=lab.ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"sixteen switches: {done.stdout[-300:]}{done.stderr[-300:]}")
    lines = (results / "sixteen-switches" / "latest" / "events.jsonl").read_text().splitlines()
    ready = [event["t_ns"] for event in map(json.loads, lines) if event["event"] == "ready"]
    return float(max(ready) - start_ns) / 1e9
