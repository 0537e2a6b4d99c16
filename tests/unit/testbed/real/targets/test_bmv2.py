"""The bmv2 target without BMv2: command lines, names, what is missing; no root."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from agglab.testbed.base.errors import MachineLacks
from agglab.testbed.real.targets import TARGETS, Bmv2Target, NativeTarget, bmv2, choose
from agglab.testbed.real.targets.base import SwitchSetting
from agglab.testbed.real.targets.thrift import ProgramNames, ThriftControl
from agglab.testbed.schema import target_names
from agglab.testbed.systems.plan import CloneSession, Entries, Replica, TableEntry

PROGRAM = {
    "header_types": [
        {"name": "eth_t", "fields": [["dst", 48, False], ["kind", 16, False]]},
    ],
    "headers": [{"name": "eth", "header_type": "eth_t"}],
    "actions": [
        {
            "id": 4,
            "name": "I.forward",
            "runtime_data": [{"name": "port", "bitwidth": 9}, {"name": "mark", "bitwidth": 4}],
        },
        {"id": 5, "name": "I.forward_all", "runtime_data": []},
    ],
    "pipelines": [
        {
            "tables": [
                {
                    "name": "I.t",
                    "actions": ["I.forward", "I.forward_all"],
                    "action_ids": [4, 5],
                    "key": [
                        {"name": "h.eth.dst", "match_type": "exact", "target": ["eth", "dst"]},
                        {"name": "h.eth.kind", "match_type": "lpm", "target": ["eth", "kind"]},
                    ],
                }
            ]
        }
    ],
    "counter_arrays": [{"name": "I.seen", "size": 3}],
    "register_arrays": [{"name": "I.r", "size": 8}],
}
ENTRY = TableEntry("t", {"kind": (0x0800, 8), "dst": 5}, "forward", {"mark": 2, "port": 511})
ALL = TableEntry("t", {"kind": (0, 0), "dst": 6}, "forward_all")


class Cli:
    """Remembers commands; handles count up."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def command(self, line: str) -> str:
        self.lines.append(line)
        if line.startswith("counter_read"):
            return f"c= ({len(self.lines)} bytes, 7 packets)"
        if line.startswith("register_read"):
            return f"I.r[0]= {len(self.lines)}"
        return f"created with handle {len(self.lines)}"

    def close(self) -> None:
        self.lines.append("closed")


@pytest.fixture
def setting(tmp_path: Path) -> SwitchSetting:
    return SwitchSetting("s1", 3, {1: "s1-eth1", 2: "s1-eth2"}, tmp_path, None, 1)


@pytest.fixture
def control(setting: SwitchSetting, tmp_path: Path) -> tuple[ThriftControl, Cli]:
    control, cli = ThriftControl(setting, tmp_path / "p.json"), Cli()
    control._names, control._cli = ProgramNames(PROGRAM), cli  # type: ignore[assignment]
    return control, cli


def install(folder: Path, *programs: str, says: str = "") -> None:
    for name in programs:
        (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    bmv2._help.cache_clear()
    yield folder
    bmv2._help.cache_clear()


def test_what_is_missing_is_named(path: Path) -> None:
    with pytest.raises(MachineLacks, match="BMv2"):
        bmv2.installed()
    install(path, "simple_switch")
    with pytest.raises(MachineLacks, match="simple_switch_CLI"):
        bmv2.installed()
    install(path, "simple_switch_CLI")
    assert bmv2.installed() == "simple_switch"
    install(path, "simple_switch_grpc")
    assert bmv2.installed() == "simple_switch_grpc"


def test_the_thrift_switch_gets_its_program_and_no_log(path: Path, setting: SwitchSetting) -> None:
    install(path, "simple_switch", "simple_switch_CLI")
    target = choose("bmv2", Path("p.json"), Path("p.p4info"), "off")
    assert target.command(setting) == [
        *("simple_switch", "-i", "1@s1-eth1", "-i", "2@s1-eth2", "--device-id", "3"),
        *("--thrift-port", "9090", "p.json"),
    ]
    assert target.control(setting).interface == "Thrift"


def test_the_grpc_switch_is_started_empty(path: Path, setting: SwitchSetting) -> None:
    install(path, "simple_switch_grpc", says="--notifications-addr arg")
    target = Bmv2Target(Path("p.json"), Path("p.p4info"), "debug")
    scratch = setting.scratch
    assert target.command(setting)[5:] == [
        *("--device-id", "3", "--log-console", "-L", "debug"),
        *("--notifications-addr", f"ipc://{scratch}/s1.notifications", "--no-p4", "--"),
        *("--grpc-server-addr", f"unix:{scratch}/s1.grpc"),
    ]


def test_the_native_switch_is_the_default() -> None:
    target = choose("native", Path("p.json"), Path("p.p4info"), "off")
    assert isinstance(target, NativeTarget)


def test_the_manifest_has_version_and_queues(path: Path) -> None:
    install(path, "simple_switch_grpc", says="1.15.5")
    facts = bmv2.facts()
    assert facts["program"] == str(path / "simple_switch_grpc")
    assert facts["version"] == "1.15.5"
    assert facts["queues"]["egress_packets_per_port"] == 64


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("TServerSocket::listen() Could not bind to port 9090", "Thrift port"),
        (
            "terminate called after throwing an instance of 'Json::RuntimeError'",
            "the compiled program is not JSON",
        ),
        ("Field standard_metadata.egress_port is required by switch target", "v1model"),
        ("set pipeline: UNKNOWN: Error in first phase of device update", "cannot load"),
        ("all is well", ""),
    ],
)
def test_likely_causes(line: str, cause: str) -> None:
    target = Bmv2Target(Path("p.json"), Path("p.p4info"))
    said = target.likely_cause(["starting", line])
    assert cause in said
    assert bool(said) == bool(cause)


def copies(*ports: int) -> tuple[Replica, ...]:
    return tuple(map(Replica, ports))


def test_instances_and_clone_sessions(control: tuple[ThriftControl, Cli]) -> None:
    session, cli = control
    groups = {4: (Replica(1), Replica(2, 7), Replica(3))}
    old = Entries((), groups, {5: CloneSession((Replica(2, 3), Replica(3, 3)))})
    session.change(Entries((), {}), old)
    assert cli.lines == [
        "mc_mgrp_create 4",
        "mc_node_create 1 1 3",
        "mc_node_associate 4 2",
        "mc_node_create 7 2",
        "mc_node_associate 4 4",
        "mc_mgrp_create 32773",
        "mc_node_create 3 2 3",
        "mc_node_associate 32773 7",
        "mirroring_add_mc 5 32773",
    ]
    cli.lines[:] = []
    new = Entries((), {4: (Replica(2, 7), Replica(6, 8))}, {5: CloneSession((Replica(1, 3),))})
    session.change(old, new)
    assert cli.lines == [
        "mc_node_dissociate 4 2",
        "mc_node_destroy 2",
        "mc_node_update 4 2",
        "mc_node_create 8 6",
        "mc_node_associate 4 4",
        "mc_node_update 7 1",
    ]
    cli.lines[:] = []
    session.change(new, Entries((), new.groups))
    assert cli.lines == [
        "mirroring_delete 5",
        "mc_node_dissociate 32773 7",
        "mc_node_destroy 7",
        "mc_mgrp_destroy 32773",
    ]


def test_entries_are_written_in_the_programs_order(control: tuple[ThriftControl, Cli]) -> None:
    session, cli = control
    session.change(Entries((), {}), Entries((ENTRY, ALL), {4: copies(1, 2), 5: copies(2)}))
    assert cli.lines == [
        "mc_mgrp_create 4",
        "mc_node_create 1 1 2",
        "mc_node_associate 4 2",
        "mc_mgrp_create 5",
        "mc_node_create 1 2",
        "mc_node_associate 5 5",
        "table_add I.t I.forward 0x5 0x800/8 => 0x1ff 0x2",
        "table_add I.t I.forward_all 0x6 0x0/0 =>",
    ]


def test_ternary_range_and_default(setting: SwitchSetting, tmp_path: Path) -> None:
    """BMv2: the smaller number wins; what an entry leaves out matches anything."""
    program = copy.deepcopy(PROGRAM)
    program["pipelines"][0]["tables"][0]["key"] = [
        {"name": "h.eth.dst", "match_type": "ternary", "target": ["eth", "dst"]},
        {"name": "h.eth.kind", "match_type": "range", "target": ["eth", "kind"]},
    ]
    control, cli = ThriftControl(setting, tmp_path / "p.json"), Cli()
    control._names, control._cli = ProgramNames(program), cli  # type: ignore[assignment]
    urgent = TableEntry("t", {"dst": (5, 0xFF)}, "forward_all", priority=9)
    other = TableEntry("t", {"kind": (3, 4)}, "forward_all", priority=8)
    default = TableEntry("t", {}, "forward", {"port": 1, "mark": 2}, default=True)
    all_of_it = Entries((urgent, other, default), {})
    control.change(Entries((), {}), all_of_it)
    control.change(all_of_it, Entries((), {}))
    ranks = [int(line.split()[-1]) for line in cli.lines[:2]]
    assert ranks[0] < ranks[1]
    assert [" ".join(line.split()[:-1]) for line in cli.lines[:2]] == [
        "table_add I.t I.forward_all 0x5&&&0xff 0x0->0xffff =>",
        "table_add I.t I.forward_all 0x0&&&0x0 0x3->0x4 =>",
    ]
    assert cli.lines[2:] == [
        "table_set_default I.t I.forward 0x1 0x2",
        "table_delete I.t 1",
        "table_delete I.t 2",
        "table_reset_default I.t",
    ]


def test_only_what_differs_is_written(control: tuple[ThriftControl, Cli]) -> None:
    session, cli = control
    old = Entries((ENTRY, ALL), {4: copies(1, 2), 5: copies(2)})
    session.change(Entries((), {}), old)
    cli.lines[:] = []
    changed = TableEntry("t", ENTRY.match, "forward", {"mark": 3, "port": 1})
    session.change(old, Entries((changed,), {4: copies(1)}))
    assert cli.lines == [
        "mc_node_dissociate 5 5",
        "mc_node_destroy 5",
        "mc_mgrp_destroy 5",
        "mc_node_update 2 1",
        "table_delete I.t 8",
        "table_modify I.t I.forward 7 => 0x1 0x3",
    ]


def test_a_reset_forgets_handles(control: tuple[ThriftControl, Cli]) -> None:
    session, cli = control
    session.change(Entries((), {}), Entries((ENTRY,), {}))
    session.reset()
    assert cli.lines.pop() == "reset_state"
    assert not session._handles
    cli.lines[:] = []
    session.change(Entries((), {}), Entries((ENTRY,), {4: copies(1)}))
    assert [line.split()[0] for line in cli.lines] == [
        "mc_mgrp_create",
        "mc_node_create",
        "mc_node_associate",
        "table_add",
    ]


def test_counters_and_registers(control: tuple[ThriftControl, Cli]) -> None:
    session, cli = control
    assert session.read_counter("seen") == {0: (7, 1), 1: (7, 2), 2: (7, 3)}
    assert session.read_register("I.r", [6, 2]) == [4, 5]
    assert cli.lines[3:] == ["register_read I.r 6", "register_read I.r 2"]
    with pytest.raises(ValueError, match="counter nothing does not exist"):
        session.read_counter("nothing")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (TableEntry("u", {}, "forward"), "table u does not exist; the program has I.t"),
        (TableEntry("t", ENTRY.match, "drop"), "action of table t drop does not exist"),
        (TableEntry("t", {"kind": (0, 0)}, "forward_all"), "h.eth.dst has no value"),
        (
            TableEntry("t", ENTRY.match, "forward", {"port": 1}),
            "has the parameters port, mark, not port",
        ),
        (
            TableEntry("t", ENTRY.match, "forward", {"port": 512, "mark": 0}),
            "forward.port: 512 does not fit into 9 bits",
        ),
        (
            TableEntry("t", {"dst": (1, 2), "kind": (0, 0)}, "forward_all"),
            "key h.eth.dst has the match kind exact",
        ),
    ],
)
def test_what_the_program_lacks_is_named(entry: TableEntry, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ProgramNames(PROGRAM).entry(entry)


def test_every_target_of_a_scenario_is_there() -> None:
    assert tuple(TARGETS) == target_names.TARGETS
    for name, module in TARGETS.items():
        made = choose(name, Path("program.json"), Path("program.p4info"), "off")
        assert isinstance(made, module.TARGET)
