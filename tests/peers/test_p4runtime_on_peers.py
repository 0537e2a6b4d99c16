"""The same requests to our P4Runtime server and to BMv2's: codes, errors, reads, packets.

Where answers differ ours is what the specification says; each such step is listed with its reason,
and a step that differs no longer must leave the list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dialogue_profiles
import dialogue_sessions
import dialogue_state
import dialogue_tables
import pytest
from controller import OURS, PEER, Controller, server
from dialogue import GROUPS
from pairs import need

from p4native.compiler.command import main as compile_p4

assert dialogue_profiles and dialogue_sessions and dialogue_state and dialogue_tables
pytestmark = pytest.mark.peers
HERE = Path(__file__).parent

CONST = "the peer does not say that entries are const, nor that this is why they cannot change"
CODES = "the peer says UNKNOWN, or INVALID_ARGUMENT for what is not there"
LAX = "the peer takes what the specification forbids"
LEAVINGS = "groups that the peer refuses are there nevertheless"
LACKS = "the peer does not have it"
UNITS = "the peer sets only the count that the counter's declaration names"
DEFAULTS = "data that is not given means unchanged, and with no cell given all cells"
MODES = "the peer cannot be asked for members while entries have action sets"
ORDER = "replicas come back as they were written, watch ports at the member they belong to"
SILENT = "the peer sends nothing back, or sends the packet"
STUCK = "after a configuration that it cannot reconcile the peer takes no more"
PROMOTES = "since version 1.3 no backup becomes primary by itself"

DIFFERENT = {
    "exact_entries": {"read all tables": CONST, "modify without action": LACKS},
    "byte_strings": {"empty key": LAX, "empty parameter": LAX},
    "wrong_entries": {
        "no entity": CODES,
        "a negative priority": LAX,
        "a parameter twice": LAX,
        "row 8 of 8": CODES,
    },
    "ternary_entries": {"negative priority": CODES, "full range": LAX, "an empty optional": LAX},
    "defaults": {"with a timeout": LAX, "an entry of keyless": CODES},
    "const_entries": dict.fromkeys(("read", "insert", "modify", "delete"), CONST),
    "profile_members": {
        "number 0": LAX,
        "delete in use": CODES,
        "an entry of an unknown member": CODES,
        "a group of it": LAX,
    },
    "profile_groups": {
        "number 0": LAX,
        "negative weight": LEAVINGS,
        "read": LEAVINGS,
        "delete in use": CODES,
        "delete member in use": CODES,
        "unknown group": CODES,
        "read again": LEAVINGS,
    },
    "watch_ports": {"read": ORDER, "read older": ORDER},
    "action_sets": {"no members of it": MODES, "no groups of it": MODES},
    "counters": {
        **{f"read {name}[9]": CODES for name in ("both", "packets", "bytes")},
        **{f"write {name}[9]": CODES for name in ("both", "packets", "bytes")},
        **dict.fromkeys(("read packets[0]", "read bytes[0]", "counts on", "read all"), UNITS),
        "delete": LAX,
        "write all cells": DEFAULTS,
        "read cell without data": DEFAULTS,
    },
    "direct_counters": {
        "unknown entry": CODES,
        "write unknown entry": CODES,
        "delete": LAX,
        "read both": LAX,
    },
    "meters": {
        "index 9": CODES,
        "write index 9": CODES,
        "committed above peak": CODES,
        "huge burst": LACKS,
        "all": LACKS,
        "all cells at once": LACKS,
    },
    "direct_meters": {"unknown entry": CODES},
    "registers_and_value_sets": dict.fromkeys(("registers", "value sets", "externs"), LACKS),
    "multicast_groups": {"read": ORDER, "read all of it": LACKS},
    "clone_sessions": {"cut": LACKS, "read all": ORDER},
    "digests": {"read before": LACKS, "read all": LACKS},
    "packets": dict.fromkeys(
        (
            "one missing",
            "one too wide",
            "unknown field",
            "none",
            "unknown digest_ack",
            "empty message",
        ),
        SILENT,
    ),
    "reads": {"an empty entity": CODES, "another device": CODES, "a key without priority": LACKS}
    | {"all tables": CONST},
    "atomicity": dict.fromkeys(("roll back", "data plane", "read"), LACKS),
    "configurations": dict.fromkeys(("reconcile", "commit", "cleared", "save"), STUCK),
    "several_controllers": {
        "another device": CODES,
        "write to another device": CODES,
        **dict.fromkeys(("the primary leaves", "nobody is primary", "and writes"), PROMOTES),
    },
    "roles": {"a role": LACKS, "an unknown role": LACKS},
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """P4Info and JSON of dialogue.p4."""
    folder = tmp_path_factory.mktemp("dialogue")
    json, p4info = folder / "dialogue.json", folder / "dialogue.txtpb"
    arguments = [str(HERE / "dialogue.p4"), "-o", str(json), "--p4runtime-files", str(p4info)]
    assert compile_p4(arguments) == 0
    return p4info.read_bytes(), json.read_bytes()


def talk(
    command: list[str], folder: Path, program: tuple[bytes, bytes], group: str
) -> dict[str, Any]:
    """The answers to a group's steps, of a server that has just been started."""
    folder.mkdir()
    with server(command, folder) as address:
        controller = Controller(address, *program)
        try:
            assert controller.arbitrate(1) == ("OK", 1, "")
            assert controller.configure("VERIFY_AND_COMMIT") == "OK"
            return dict(GROUPS[group](controller))
        finally:
            controller.close_all()


@pytest.mark.parametrize("group", GROUPS)
def test_same_answers(tmp_path: Path, program: tuple[bytes, bytes], group: str) -> None:
    need(*PEER)
    ours = talk(OURS, tmp_path / "ours", program, group)
    peer = talk(PEER, tmp_path / "peer", program, group)
    assert ours.keys() == peer.keys()
    expected = DIFFERENT.get(group, {})
    for step in ours:
        if step not in expected:
            assert ours[step] == peer[step], f"{group}: {step}"
    no_more = [step for step in expected if ours[step] == peer[step]]
    assert not no_more, f"the same on both now: {no_more}"
