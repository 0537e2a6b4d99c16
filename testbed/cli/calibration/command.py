"""Implements `agglab calibrate`: measures with runs on real links what this machine can carry, and
stores it."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from agglab.testbed.base.exit_codes import FAILED, INTERRUPTED, LACKING, PASSED
from agglab.testbed.cli import arguments
from agglab.testbed.cli.calibration import capacity
from agglab.testbed.cli.calibration.capacity import Row
from agglab.testbed.cli.calibration.search import highest
from agglab.testbed.scenario import load

BEGIN_BPS = 100_000_000
ROUND_S, ROUNDS = 0.3, 3
BUSY = "runs are not network-bound even at 5 Mbit/s: repeat the calibration on a quieter machine"

Probe = Callable[[int, int, int], bool]
"""A function that takes (workers, packet bytes, rate) and returns whether a run is network-bound.
It raises Unmeasured."""


class Unmeasured(Exception):
    """Raised if a run could not be measured. It has the run's exit code and its last line of
    output."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


def main(words: Sequence[str], probe: Probe | None = None) -> int:
    """Runs `agglab calibrate`. Returns 0, 1 if nothing could be measured, or 3 if the machine lacks
    something. Rows of the table are printed as soon as they are found. They are stored even if the
    command is interrupted (exit code 130)."""
    options = arguments.parse("calibrate", arguments.calibrate, words)
    rows: list[Row] = []
    code = PASSED
    try:
        for packet_bytes in options.packet_bytes:
            for workers in options.workers:
                rows += _row(probe or measured, workers, packet_bytes)
    except Unmeasured as error:
        print(f"a run was aborted: {error}")
        code = error.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    if rows:
        print(f"written to {capacity.keep(rows)}")
    return code if rows or code else FAILED


def _row(probe: Probe, workers: int, packet_bytes: int) -> list[Row]:
    rate_bps = highest(lambda tried: probe(workers, packet_bytes, tried), BEGIN_BPS)
    about = f"{workers} workers, packets of {packet_bytes} bytes"
    if rate_bps is None:
        print(f"{about}: {BUSY}", flush=True)
        return []
    print(f"{about}: {rate_bps / 1e6:.0f} Mbit/s", flush=True)
    return [Row(workers, packet_bytes, rate_bps)]


def measured(workers: int, packet_bytes: int, rate_bps: int) -> bool:
    """Returns whether the network limits the speed of a run of the default system, on a rack with
    links of this rate. The run takes about a second."""
    from agglab.testbed.experiment.scenario_run import run

    elements = max(1000, round(ROUND_S * rate_bps / 32))
    scenario = {
        "name": "calibration",
        "topology": {"workers": workers},
        "links": {"rate": f"{rate_bps}bit", "mtu": packet_bytes},
        "workload": {"elements": elements, "rounds": ROUNDS},
        "series": {"record": False},
        "expect": {"exact": True},
    }
    with tempfile.TemporaryDirectory(prefix="agglab-calibrate-") as folder:
        path = Path(folder) / "calibration.yaml"
        path.write_text(json.dumps(scenario))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = run(load(path), Path(folder), [], io.StringIO())
        if code in (LACKING, INTERRUPTED):
            raise Unmeasured(code, said.getvalue().strip())
        (found,) = Path(folder).glob("calibration/2*/metrics.json")
        verdict = json.loads(found.read_text()).get("fidelity", {}).get("verdict")
    return bool(verdict == "network-bound")
