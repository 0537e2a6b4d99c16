"""`agglab export`: writes a scenario's network for p4-utils and for p4lang's tutorials."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from agglab.hosts import wire
from agglab.testbed.base.exit_codes import INVALID, PASSED
from agglab.testbed.cli import arguments
from agglab.testbed.run.programs.prepare import all_entries, prepare
from agglab.testbed.run.programs.program import Program, Programs
from agglab.testbed.scenario import find, load
from agglab.testbed.systems.plan import Entries, Replica, TableEntry
from agglab.testbed.systems.plan.forwarding import neighbours
from agglab.topologies import Link, LinkEnd, Topology
from agglab.topologies.graph import PREFIX_LENGTH
from p4native.common.object_names import full_name
from p4native.switch import Program as Described

GRPC_PORT = 9559
MBIT = 10**6


@dataclass(frozen=True)
class Exported:
    """Everything of a scenario that an export needs. entries: the entries of each switch, with the
    full names that P4Info gives to tables, keys and actions."""

    graph: Topology
    programs: Programs
    entries: Mapping[str, Entries]

    def copy_programs(self, out: Path) -> dict[str, tuple[str, str]]:
        """Copies the programs into out/build. Returns for every switch the paths of its P4Info and
        JSON relative to `out`. Programs that come from one source with different compile-time
        parameters get numbers in their file names."""
        (out / "build").mkdir(parents=True, exist_ok=True)
        paths: dict[Path, tuple[str, str]] = {}
        stems: Counter[str] = Counter()
        for program in self.programs.values():
            if program.json not in paths:
                stem = program.source.stem
                stems[stem] += 1
                stem += f"-{stems[stem]}" if stems[stem] > 1 else ""
                p4info, json = f"build/{stem}.p4info.txtpb", f"build/{stem}.json"
                shutil.copyfile(program.p4info, out / p4info)
                shutil.copyfile(program.json, out / json)
                paths[program.json] = p4info, json
        return {switch: paths[program.json] for switch, program in self.programs.items()}


def main(words: Sequence[str]) -> int:
    """Runs `agglab export` and returns its exit code. Prints the folder of the files and what was
    not exported."""
    options = arguments.parse("export", arguments.export, words)
    suite = load(find(options.scenario), options.set)
    point = next((p for p in suite.points if p.contender == options.contender), None)
    if point is None:
        known = ", ".join(suite.contenders) or "none, because the scenario compares nothing"
        what = (
            f"cannot export {options.scenario}: --contender must be one of the scenario's "
            f"contenders: {known}"
        )
        print(what, file=sys.stderr)
        return INVALID
    resolved = point.resolved
    prepared = prepare(resolved)
    programs = prepared.programs
    entries = {
        node: full_names(prepared.fill(node, planned), Described.read(programs[node].json))
        for node, planned in all_entries(resolved).items()
    }
    exported = Exported(resolved.graph, programs, entries)
    out = Path(options.out)
    try:
        if options.to == "tutorial":
            write_tutorial(exported, out)
        else:
            write_p4app(exported, out, options.switch)
    except OSError as error:
        print(
            f"cannot export {options.scenario}: {error.filename}: {error.strerror}",
            file=sys.stderr,
        )
        return INVALID
    except ValueError as error:
        print(f"cannot export {options.scenario}: {error}", file=sys.stderr)
        return INVALID
    print(out)
    for what in left_out(exported.graph, options.to):
        print(f"not exported: {what}")
    return PASSED


def left_out(graph: Topology, to: str) -> Iterator[str]:
    """Yields a line for each thing that the format cannot express."""
    ways = [way for link in graph.links for *_, way in link.directions()]
    if any(way.impairments for way in ways):
        yield "losses and other impairments, which are seeded in Agglab"
    if any(link.a_to_b != link.b_to_a for link in graph.links):
        yield "the values of the second direction of links whose two directions differ"
    if any(way.queue_bytes or way.queue_packets for way in ways) and to == "tutorial":
        yield "queue lengths"


def full_names(entries: Entries, program: Described) -> Entries:
    """Returns the entries with the full names that P4Info gives to tables, keys and actions."""

    def named(entry: TableEntry) -> TableEntry:
        table = program.tables[full_name(program.tables, entry.table, "table")]
        keys = [key.name for key in table.keys]
        return TableEntry(
            table.name,
            {full_name(keys, name, "key"): value for name, value in entry.match.items()},
            full_name([action.name for action in table.actions], entry.action, "action"),
            entry.parameters,
            entry.priority,
            entry.default,
        )

    return replace(entries, tables=tuple(named(entry) for entry in entries.tables))


def runtime(entries: Entries, p4info: str, program: str) -> dict[str, Any]:
    """Returns the content of a `sN-runtime.json` of p4lang's tutorials, which `switch.entries` also
    reads."""
    return {
        "target": "bmv2",
        "p4info": p4info,
        "bmv2_json": program,
        "table_entries": [_runtime_entry(entry) for entry in entries.tables],
        "multicast_group_entries": [
            {"multicast_group_id": group, "replicas": _runtime_replicas(replicas)}
            for group, replicas in entries.groups.items()
        ],
        "clone_session_entries": [
            {
                "clone_session_id": number,
                "replicas": _runtime_replicas(session.replicas),
                "packet_length_bytes": session.max_bytes,
            }
            for number, session in entries.sessions.items()
        ],
    }


def _runtime_replicas(replicas: Sequence[Replica]) -> list[dict[str, int]]:
    return [{"egress_port": each.port, "instance": each.instance} for each in replicas]


def _runtime_entry(entry: TableEntry) -> dict[str, Any]:
    content: dict[str, Any] = {"table": entry.table}
    if entry.default:
        content["default_action"] = True
    else:
        content["match"] = {
            k: list(v) if isinstance(v, tuple) else v for k, v in entry.match.items()
        }
    content |= {"action_name": entry.action, "action_params": entry.parameters}
    return content | ({"priority": entry.priority} if entry.priority else {})


def write_tutorial(exported: Exported, out: Path) -> None:
    """Writes topology.json, sN-runtime.json and build/ for `utils/run_exercise.py`, which is
    started in `out`."""
    graph = exported.graph
    for nodes, first in ((graph.hosts, "h"), (graph.switches, "s")):
        for node in nodes:
            if not node.name.startswith(first):
                what = f"the name of {node.name} does not begin with {first!r}"
                raise ValueError(
                    f"the tutorials distinguish hosts from switches by their names, and {what}"
                )
    copied = exported.copy_programs(out)
    for switch, entries in exported.entries.items():
        p4info, program = copied[switch]
        _write(out / f"{switch}-runtime.json", runtime(entries, p4info, program))
    content = {
        "hosts": {
            host.name: {
                "ip": f"{host.ip}/{PREFIX_LENGTH}",
                "mac": host.mac,
                "commands": [
                    f"arp -i eth0 -s {ip} {mac}" for ip, mac in _neighbours(graph, host.name)
                ],
            }
            for host in graph.hosts
        },
        "switches": {s.name: {"runtime_json": f"{s.name}-runtime.json"} for s in graph.switches},
        "links": [_tutorial_link(graph, link) for link in graph.links],
    }
    _write(out / "topology.json", content)


def _tutorial_link(graph: Topology, link: Link) -> list[Any]:
    hosts = {host.name for host in graph.hosts}

    def end(at: LinkEnd) -> str:
        return at.node if at.node in hosts else f"{at.node}-p{at.port}"

    ends = sorted((end(link.a), end(link.b)))
    way = link.a_to_b
    content: list[Any] = [*ends, f"{way.delay_us}us"]
    return content + ([way.rate_bps / MBIT] if way.rate_bps else [])


def write_p4app(exported: Exported, out: Path, switch: str) -> None:
    """Writes p4app.json for `p4run`, which is started in `out`, and the files that fill the
    switches."""
    graph, thrift = exported.graph, Path(switch).name == "simple_switch"
    switches, copied = {}, exported.copy_programs(out)
    for number, node in enumerate(graph.switches):
        entries, (p4info, program) = exported.entries[node.name], copied[node.name]
        _write(out / f"{node.name}-runtime.json", runtime(entries, p4info, program))
        own = {"sw_bin": switch, "json_path": program, "device_id": node.device_id}
        if thrift:
            commands = out / f"{node.name}-commands.txt"
            commands.write_text(
                "".join(f"{c}\n" for c in cli_commands(entries, exported.programs[node.name]))
            )
            own["cli_input"] = commands.name
        else:
            own["grpc_port"] = GRPC_PORT + number
        switches[node.name] = own
    (out / "fill.sh").write_text(_fill_script(graph, thrift))
    (out / "fill.sh").chmod(0o755)
    kind = "P4Switch" if thrift else "P4RuntimeSwitch"
    content = {
        "cli": True,
        "pcap_dump": False,
        "enable_log": True,
        "switch_node": {"module_name": "p4utils.mininetlib.node", "object_name": kind},
        "exec_scripts": [{"cmd": "./fill.sh", "reboot_run": True}],
        "topology": {
            "default": {"auto_arp_tables": False, "auto_gw_arp": False},
            "hosts": {host.name: {} for host in graph.hosts},
            "switches": switches,
            "links": [_p4app_link(graph, link) for link in graph.links],
        },
    }
    _write(out / "p4app.json", content)


def _p4app_link(graph: Topology, link: Link) -> list[Any]:
    hosts = {host.name: host for host in graph.hosts}
    way = link.a_to_b
    options: dict[str, Any] = {"delay": f"{way.delay_us}us"} if way.delay_us else {}
    if way.rate_bps:
        options["bw"] = way.rate_bps / MBIT
    if way.queue_packets:
        options["max_queue_size"] = way.queue_packets
    for number, end in ((1, link.a), (2, link.b)):
        options[f"port{number}"] = end.port
        if end.node in hosts:
            host = hosts[end.node]
            options[f"addr{number}"] = host.mac
            options[f"params{number}"] = {"ip": f"{host.ip}/{PREFIX_LENGTH}"}
    return [link.a.node, link.b.node, options]


def cli_commands(entries: Entries, program: Program) -> Iterator[str]:
    """Yields the entries as commands for simple_switch_CLI."""
    from agglab.testbed.real.targets.thrift import (
        FIRST_SESSION_GROUP,
        LEAST_URGENT,
        ProgramNames,
        by_instance,
    )

    groups = dict(entries.groups)
    for number, session in entries.sessions.items():
        groups[FIRST_SESSION_GROUP + number] = session.replicas
    nodes = count()
    for group, replicas in groups.items():
        yield f"mc_mgrp_create {group}"
        for instance, ports in by_instance(replicas).items():
            yield f"mc_node_create {instance} {' '.join(map(str, ports))}"
            yield f"mc_node_associate {group} {next(nodes)}"
    for number in entries.sessions:
        yield f"mirroring_add_mc {number} {FIRST_SESSION_GROUP + number}"
    names = ProgramNames(json.loads(program.json.read_text()))
    for entry in entries.tables:
        table, match, action, arguments = names.entry(entry)
        rank = f" {LEAST_URGENT - entry.priority}" if entry.priority else ""
        if entry.default:
            yield f"table_set_default {table} {action} {arguments}"
        else:
            yield f"table_add {table} {action} {match} => {arguments}{rank}"


def _fill_script(graph: Topology, thrift: bool) -> str:
    """Returns a script that sets the hosts' neighbours (Mininet calls their shells `mininet:h1`)
    and fills the switches over P4Runtime."""
    lines = [
        "#!/bin/sh",
        "# Run by p4-utils once the network is up.",
        "set -ex",
        'cd "$(dirname "$0")"',
        "exec >fill.log 2>&1",
    ]
    for host in graph.hosts:
        lines.append(f"pid=$(pgrep -f 'mininet:{host.name}$')")
        for ip, mac in _neighbours(graph, host.name):
            lines.append(f"mnexec -a $pid ip neigh replace {ip} lladdr {mac} dev {host.name}-eth0")
    if not thrift:
        python = shlex.quote(sys.executable)
        for number, switch in enumerate(graph.switches):
            address = f"127.0.0.1:{GRPC_PORT + number}"
            words = f"{address} {switch.device_id} {switch.name}-runtime.json"
            lines.append(f"{python} -m agglab.testbed fill {words}")
    lines.append(
        "exec sleep infinity  # p4-utils ends its scripts, and fails on one that has ended"
    )
    return "".join(f"{line}\n" for line in lines)


def _neighbours(graph: Topology, name: str) -> list[tuple[str, str]]:
    """Returns the IPv4 and MAC addresses that a host knows: of all other hosts, and of the
    aggregator."""
    return [*neighbours(graph, name), (wire.AGGREGATOR_ADDRESS, wire.AGGREGATOR_MAC)]


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
