"""Table entries of jobs, and their encoding for P4Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2

from agglab.testbed.real.p4runtime import Names, encode, read_p4info
from agglab.testbed.systems.plan import TableEntry
from agglab.testbed.systems.summing.plan import PlacedJob, job_entries
from agglab.topologies import rack

P4INFO = """
tables {
  preamble { id: 33554433 name: "Ingress.jobs.workers" alias: "workers" }
  match_fields { id: 1 name: "standard_metadata.ingress_port" bitwidth: 9 match_type: EXACT }
  match_fields { id: 2 name: "hdr.aggregation.job" bitwidth: 16 match_type: EXACT }
}
tables {
  preamble { id: 33554434 name: "Ingress.routes" alias: "Ingress.routes" }
  match_fields { id: 1 name: "hdr.ipv4.dst" bitwidth: 32 match_type: LPM }
}
tables { preamble { id: 33554435 name: "Egress.routes" alias: "Egress.routes" } }
actions {
  preamble { id: 16777217 name: "Ingress.jobs.contribute" alias: "contribute" }
  params { id: 1 name: "worker" bitwidth: 64 }
  params { id: 2 name: "slots" bitwidth: 16 }
}
counters { preamble { id: 302 name: "Ingress.fresh" alias: "fresh" } }
"""

TYPE_INFO = """
type_info { new_types { key: "port_t" value { translated_type { sdn_bitwidth: 32 } } } }
"""


def names() -> Names:
    return Names(text_format.Parse(P4INFO, p4info_pb2.P4Info()))


def by_table(entries: Any, table: str) -> list[TableEntry]:
    return [entry for entry in entries.tables if entry.table == table]


def test_two_jobs_written_out() -> None:
    jobs = [PlacedJob(1, ("h3", "h1"), 0, 16), PlacedJob(900, ("h2",), 16, 4)]
    entries = job_entries(rack(3), "s1", jobs)
    ports = {number: tuple(r.port for r in copies) for number, copies in entries.groups.items()}
    assert ports == {1: (1, 2, 3), 2: (3, 1), 3: (2,)}
    assert {copy.instance for copies in entries.groups.values() for copy in copies} == {1}
    first = {"all_workers": 3, "first_slot": 0, "slots": 16, "group": 2, "job_index": 0}
    second = {"all_workers": 1, "first_slot": 16, "slots": 4, "group": 3, "job_index": 1}
    root = {"parent": 511}
    assert by_table(entries, "members") == [
        TableEntry(
            "members", {"ingress_port": 3, "job": 1}, "contribute", {"worker": 1, **first, **root}
        ),
        TableEntry(
            "members", {"ingress_port": 1, "job": 1}, "contribute", {"worker": 2, **first, **root}
        ),
        TableEntry(
            "members",
            {"ingress_port": 2, "job": 900},
            "contribute",
            {"worker": 1, **second, **root},
        ),
    ]
    assert by_table(entries, "results")[1:] == [
        TableEntry(
            "results",
            {"egress_port": 1, "job": 1},
            "to_worker",
            {"mac": 0x020000000001, "address": 0x0A000001, "udp_port": 48866},
        ),
        TableEntry(
            "results",
            {"egress_port": 2, "job": 900},
            "to_worker",
            {"mac": 0x020000000002, "address": 0x0A000002, "udp_port": 49765},
        ),
    ]


def test_every_host_is_forwarded_and_routed_to() -> None:
    entries = job_entries(rack(2), "s1", [])
    assert by_table(entries, "macs") == [
        TableEntry("macs", {"dst": 0x020000000001}, "forward", {"port": 1}),
        TableEntry("macs", {"dst": 0x020000000002}, "forward", {"port": 2}),
    ]
    assert by_table(entries, "routes")[1] == TableEntry(
        "routes", {"dst": (0x0A000002, 32)}, "route", {"next_hop": 0x020000000002, "port": 2}
    )
    assert entries.groups == {1: ((1, 1), (2, 1))}


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([PlacedJob(1, ("h9",), 0, 1)], "job 1: host h9 does not exist"),
        ([PlacedJob(1, ("h1", "h1"), 0, 1)], "job 1: a host appears twice"),
        (
            [PlacedJob(2, ("h1",), 8, 8), PlacedJob(1, ("h2",), 0, 9)],
            "job 2: its slots overlap .* job 1",
        ),
        ([PlacedJob(20000, ("h1",), 0, 1)], "job 20000: the largest job number is 16670"),
        ([PlacedJob(n, ("h1",), n, 1) for n in range(17)], "17 jobs: the program holds at most 16"),
    ],
)
def test_jobs_that_cannot_be(jobs: list[PlacedJob], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        job_entries(rack(2), "s1", jobs)


def test_an_entry_becomes_ids_and_canonical_bytes() -> None:
    entry = TableEntry(
        "workers", {"ingress_port": 256, "job": 0}, "contribute", {"worker": 1 << 63, "slots": 5}
    )
    message = names().table_entry(entry)
    assert message.table_id == 33554433
    assert [(m.field_id, m.exact.value) for m in message.match] == [(1, b"\1\0"), (2, b"\0")]
    action = message.action.action
    assert action.action_id == 16777217
    assert [(p.param_id, p.value) for p in action.params] == [
        (1, b"\x80" + bytes(7)),
        (2, b"\5"),
    ]


def test_p4info_with_type_information(tmp_path: Path) -> None:
    """`type bit<9> port_t` leaves a map there, which the p4runtime package's class cannot read."""
    path = tmp_path / "p4info.txtpb"
    path.write_text(P4INFO + TYPE_INFO)
    info = read_p4info(path.read_bytes())
    assert info.tables[0].preamble.alias == "workers"
    (new_type,) = info.type_info.new_types
    assert (new_type.key, new_type.value.translated_type.sdn_bitwidth) == ("port_t", 32)


def test_a_prefix_match() -> None:
    entry = TableEntry("Ingress.routes", {"dst": (0x0A000000, 8)}, "contribute")
    (match,) = names().table_entry(entry).match
    assert (match.lpm.value, match.lpm.prefix_len) == (b"\x0a\0\0\0", 8)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            TableEntry("nowhere", {}, "contribute"),
            "table nowhere does not exist; the program has I",
        ),
        (TableEntry("routes", {}, "contribute"), "table routes is ambiguous"),
        (TableEntry("workers", {}, "tribute"), "action tribute does not exist"),
        (TableEntry("workers", {"port": 1}, "contribute"), "key of table workers port does not"),
        (TableEntry("workers", {}, "contribute", {"x": 1}), "parameter of action contribute x"),
        (TableEntry("workers", {"job": 1 << 16}, "contribute"), "65536 does not fit into 16 bits"),
    ],
)
def test_entries_the_program_does_not_know(entry: TableEntry, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        names().table_entry(entry)


def test_counter_by_its_last_part() -> None:
    assert names().counter("fresh") == names().counter("Ingress.fresh") == 302


@pytest.mark.parametrize(
    ("value", "expected"), [(0, b"\0"), (255, b"\xff"), (256, b"\1\0"), (0x1FF, b"\1\xff")]
)
def test_canonical_byte_strings(value: int, expected: bytes) -> None:
    assert encode(value, 9, "port") == expected
