"""What the machine offers is tried, quickly, and the trial leaves nothing."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import needs
import pytest

from agglab.testbed.real import lacks
from agglab.testbed.real.machine import needs_of
from agglab.testbed.schema.faults import AtTime, Fault, Impair
from agglab.topologies import Direction, Drop, Duplicate, Jitter, Reorder, rack

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
LOSSY = Direction(rate_bps=10**8, impairments=(Drop(0.1),))


def interfaces() -> list[str]:
    said = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return [line.split(":")[1] for line in said.splitlines()]


def test_a_machine_that_runs_these_tests_lacks_nothing_for_them() -> None:
    before = interfaces()
    assert lacks(rack(4)) == []
    assert lacks(rack(4, LOSSY, LOSSY)) == []
    assert interfaces() == before


def test_delays_need_netem() -> None:
    netem = subprocess.run(
        ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"],
        capture_output=True,
    )
    found = [lack.what for lack in lacks(rack(1, down=Direction(delay_us=50)))]
    expected = "the netem queueing discipline, which link delays need"
    assert found == ([] if netem.returncode == 0 else [expected])


@needs.mark("setpriv")
def test_root_without_the_right_to_make_namespaces() -> None:
    """As in a container that was started without --privileged."""
    code = (
        "from agglab.testbed.real import lacks; from agglab.topologies import rack; "
        "print(*lacks(rack(1)))"
    )
    weak = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    done = subprocess.run(
        [*weak, sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.startswith("this machine lacks permission to create namespaces (unshare:")
    assert "--privileged" in done.stdout


def test_what_no_real_link_does_is_refused_by_name() -> None:
    later = (Drop(0.1), Duplicate(0.5, delay_us=3))
    at_times = Fault(1, "duplicate", Impair("h2-s1", ("s1->h2",), Duplicate(0.5, 9)), AtTime(1.0))
    at_once = Fault(2, "duplicate", Impair("h2-s1", ("s1->h2",), Duplicate(0.5)), AtTime(1.0))
    found = lacks(rack(2).with_directions("h1->s1", impairments=later), [at_times, at_once])
    assert [lack.what for lack in found] == [
        "support for delaying copies of frames on a real link (h1->s1)",
        "support for delaying copies of frames on a real link (s1->h2)",
    ]
    assert all("backend: virtual" in lack.remedy for lack in found)


def test_an_impairment_that_real_links_know_nothing_of_is_refused() -> None:
    @dataclass(frozen=True)
    class Mirror:
        kind = "mirror"

    impaired: Any = (Mirror(),)
    topology = rack(1).with_directions("h1->s1", impairments=impaired)
    assert [what for what, _ in needs_of(topology).impossible] == [
        "support for mirror on a real link (h1->s1)"
    ]


@pytest.mark.parametrize("delay", [Jitter(9), Reorder(0.5, 9)])
def test_delays_for_a_time_need_netem_from_the_start(delay: Jitter | Reorder) -> None:
    late = Fault(1, "reorder", Impair("h2-s1", ("s1->h2",), delay), AtTime(1.0))
    assert needs_of(rack(2), [late]).netem
    assert needs_of(rack(2, Direction(impairments=(delay,)))).netem
    assert not needs_of(rack(2)).netem
