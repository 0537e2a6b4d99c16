"""Sends malformed packets through programs that are built with sanitizers. The loop over packets is
in packets.c."""

from __future__ import annotations

import json
import random
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from p4native import stf
from p4native.compiler import Diagnostics, compile_file, render
from p4native.compiler.backend import emit
from p4native.stf import Add, Binder, Packet, StfError, parse
from p4native.switch import Exact, Key, Lpm, Match, PipelineError, Program, Range, Table, Ternary
from p4native.switch.build import build_fuzzer
from p4native.switch.encoding import encode_action, encode_match
from p4native.switch.translate import translate
from p4native.verification.corpus import Corpus, script_of
from p4native.verification.fuzz.inputs import including
from p4native.verification.random_programs import draw_case

DRIVER = Path(__file__).with_name("packets.c")
TESTED = (
    *("stack_checksum", "stack_index", "stack_parse", "stack_push_pop"),
    *("varbit", "union", "unaligned", "odd_widths"),
    *(
        "checksum_payload",
        "checksum_update",
        "checksum_verify",
        "hashes",
        "wide_word",
        "wide_lanes",
    ),
    *("parser_advance", "parser_lookahead", "parser_value_set", "parser_subparser", "truncate"),
    *("clone_egress", "clone_ingress", "recirculate", "resubmit", "multicast", "table_lpm_exact"),
)
"""The packet tests that concern lengths, offsets, indices and copies."""
ENTRIES = 6
GROUPS = {1: [(1, 1), (2, 2)], 7: [(9, 1), (0, 2), (511, 3)]}
SESSIONS = {1: [(5, 0)], 2: [(6, 1), (7, 1)], 5: [(3, 0)], 100: [(2, 0)]}
ADDRESSES = (0x0A00FFFE, 0x0A000001, 0x020000000001)
"""Addresses that packets often have, so that random entries match some of them."""


@dataclass(frozen=True)
class Subject:
    """A program that processes packets: P4 source, and a script with entries and with packets to
    start from. share: the share of all packets that it receives; programs whose share is 0 receive
    equal parts of the rest."""

    name: str
    program: Path
    script: str
    defines: tuple[str, ...] = ()
    share: float = 0.0


def subjects(corpus: Corpus, folder: Path, seeds: range) -> list[Subject]:
    """Returns the programs of packet tests, those of further folders, and random ones. The random
    ones are written to `folder`."""
    written = []
    for seed in seeds:
        case = draw_case(seed)
        path = folder / f"random{seed}.p4"
        path.write_text(case.program)
        written.append(Subject(path.stem, path, case.script()))
    return [*_of(corpus), *written]


def _of(corpus: Corpus) -> Iterator[Subject]:
    """Yields the programs of a corpus. Those of further folders are numbered, because programs in
    different folders may have the same name."""
    shipped = Corpus().chosen(TESTED)
    for number, path in enumerate([*shipped, *corpus.further()], 1):
        name = path.stem if path in shipped else f"{path.stem}-{number - len(shipped)}"
        script = script_of(path)
        yield Subject(name, path, script.read_text(errors="replace") if script else "")


def build(subject: Subject) -> tuple[Path, bytes]:
    """Returns the executable and the setup that it reads: entries, groups and packets. Raises
    PipelineError, or StfError if the script does not fit the program."""
    diagnostics = Diagnostics()
    options = including(subject.program, subject.defines)
    typed = compile_file(str(subject.program), options, diagnostics)
    emitted = None if typed is None else emit(typed, diagnostics)
    if emitted is None:
        raise PipelineError(render(diagnostics.entries))
    document = json.loads(json.dumps(emitted[0]))
    program = Program.parse(json.dumps(document))
    setup = b"".join(_setup(program, Binder(document), subject))
    return build_fuzzer(translate(program) + DRIVER.read_text()), setup


def _setup(program: Program, binder: Binder, subject: Subject) -> Iterator[bytes]:
    rng = random.Random(subject.name)
    for command in parse(subject.script):
        if isinstance(command, Packet):
            yield b"F" + struct.pack("=I", len(command.data)) + command.data
        elif isinstance(command, Add):
            yield from _scripted(program, binder, command)
    for table in program.tables.values():
        for _ in range(ENTRIES if table.keys and not table.const_entries else 0):
            yield from _random_entry(rng, table)
    for kind, sets in ((b"G", GROUPS), (b"C", SESSIONS)):
        for number, replicas in sets.items():
            pairs = b"".join(struct.pack("=HH", *pair) for pair in replicas)
            yield kind + struct.pack("=II", number, len(replicas)) + pairs


def _scripted(program: Program, binder: Binder, command: Add) -> Iterator[bytes]:
    table = binder.table(command.table, command.line)
    bound = binder.matches(table, command.keys, command.line)
    action, args = binder.action(table, command.action, command.args, command.line)
    match = [_bound(k) for k in bound]
    yield from _entry(program.tables[table["name"]], match, action, args, command.priority or 0)


def _bound(key: stf.Match) -> Match:
    if key.kind == "lpm":
        return Lpm(key.value, key.operand)
    if key.kind == "range":
        return Range(key.value, key.operand)
    if key.kind in ("ternary", "optional"):
        return Ternary(key.value, key.operand)
    return Exact(key.value)


def _random_entry(rng: random.Random, table: Table) -> Iterator[bytes]:
    if not table.actions:
        return
    action = rng.choice(table.actions)
    args = [rng.choice((0, 1, rng.getrandbits(p.bits))) % (1 << p.bits) for p in action.params]
    match = [_any_match(rng, key) for key in table.keys]
    yield from _entry(table, match, action.name, args, rng.randrange(9))


def _entry(
    table: Table, match: list[Match], action: str, args: list[int], priority: int
) -> Iterator[bytes]:
    chosen = table.action(action)
    if chosen is None:
        return
    key, mask = encode_match(table, match)
    data = encode_action(chosen, args)
    head = struct.pack("=IiII", table.index, priority, chosen.index, len(key))
    yield b"A" + head + key + mask + struct.pack("=I", len(data)) + data


def _any_match(rng: random.Random, key: Key) -> Match:
    full = (1 << key.bits) - 1
    value = rng.choice((0, 1, 2, full, *ADDRESSES, rng.getrandbits(key.bits)))
    value &= full
    if key.kind == "lpm":
        length = rng.randrange(key.bits + 1)
        return Lpm(value >> key.bits - length << key.bits - length, length)
    if key.kind == "ternary":
        mask = rng.getrandbits(key.bits) & rng.getrandbits(key.bits)
        return Ternary(value & mask, mask)
    if key.kind == "range":
        low, high = sorted((value, rng.getrandbits(key.bits)))
        return Range(low, high)
    return Exact(value)


@dataclass(frozen=True)
class Sent:
    """The outcome of the packets that one program processed. digest: the sum of all bytes that came
    out. trouble: the sanitizer's report, or an empty string."""

    name: str
    packets: int
    copies: int
    digest: int = 0
    trouble: str = ""


def send(subject: Subject, folder: Path, seed: int, first: int, count: int) -> Sent:
    """Sends `count` packets of a seed through a program, beginning with packet number `first`. The
    setup and the findings are written to `folder`."""
    try:
        executable, setup = build(subject)
    except (PipelineError, StfError) as error:
        return Sent(subject.name, 0, 0, trouble=f"does not build: {error}")
    path = folder / f"{subject.name}.setup"
    path.write_bytes(setup)
    command = [str(executable), str(path), str(seed), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        text = f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr[-6000:]}"
        (folder / f"{subject.name}.trouble.txt").write_text(text)
        return Sent(subject.name, count, 0, trouble=text)
    packets, copies, digest = map(int, done.stdout.split())
    path.unlink()
    return Sent(subject.name, packets, copies, digest)
