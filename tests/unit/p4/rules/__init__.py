"""What any compiler and any switch has to make of a P4 program: a file for each, `RULES` in it. Our
switch is asked by test_rules.py, and every pair by tests/peers/test_rules_on_peers.py."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from conversations import Conversation, Step
from frames import worker_address, worker_mac
from outsiders import deep_and_short, forwarded
from tables import FLOOD_GROUP, Setup, neighbour, owner, route

from agglab.testbed import systems
from agglab.testbed.scenario import resolve
from agglab.testbed.schema.network_sections import Switch
from agglab.testbed.schema.scenario import JobSection, Scenario
from p4native.switch import Pipeline

ROOT = Path(__file__).resolve().parents[4]
FLOOD_PORTS, ATTACKER, ATTACKER_PORT = (1, 2, 3, 4), "h4", 4
FORWARDING_COUNTERS = ("forged", "malformed", "forwarded", "unroutable", "host_errors")


@dataclass(frozen=True)
class Rules:
    """Conversations of a program by name, each drawn by chance, and the attack that it withstands.
    tree: those of each switch of a tree of them, kept from ours while workers' sums came out right.

    program: the stem of its file in p4/; defines: what it is compiled with. systems: those of the
    testbed whose attacks it is sent, by a host that is in none of their jobs; keys: of their
    scenario, where it needs more than a job. members: what the switch is given of jobs then, whose
    workers are at ports 1 to 3. refused: where it counts what outsiders send to switches,
    "name(index)"; empty: it has no such counter. rare: states that its conversations must reach,
    because a rule about them is otherwise tested by nothing.
    """

    program: str
    defines: Mapping[str, int]
    conversations: Mapping[str, Callable[[random.Random], Conversation]] = field(
        default_factory=dict
    )
    tree: Callable[[Callable[[], Pipeline], random.Random], list[Conversation]] | None = None
    systems: Sequence[str] = ()
    keys: Mapping[str, Any] = field(default_factory=dict)
    members: Setup = field(default_factory=Setup)
    refused: str = ""
    rare: frozenset[str] = frozenset()

    def flags(self) -> list[str]:
        """For a compiler's command line."""
        return [f"-D{name}={value}" for name, value in self.defines.items()]

    def compiled(self, folder: Path) -> Path:
        """The JSON by our compiler."""
        product = folder / f"{self.program}.json"
        command = [sys.executable, "-m", "p4native.compiler", f"p4/{self.program}.p4"]
        subprocess.run([*command, "-o", str(product), *self.flags()], cwd=ROOT, check=True)
        return product

    def frames_of_outsiders(self, frames: Sequence[tuple[str, bytes]]) -> Conversation:
        """A conversation in which the attacker sends these, (what counts it, frame); what is
        forwarded is flooded as it came. Anything that is summed, or counted elsewhere, fails."""
        others = [port for port in FLOOD_PORTS if port != ATTACKER_PORT]
        steps = [
            Step(ATTACKER_PORT, frame, [(port, frame) for port in others if what == "forwarded"])
            for what, frame in frames
        ]
        return Conversation(self.outsiders(), steps, self.counts(Counter(w for w, _ in frames)))

    def outsiders(self) -> Setup:
        """With members, the group to flood, and the attacker's own address at its port."""
        whose = owner(ATTACKER_PORT, worker_address(ATTACKER_PORT))
        return Setup({FLOOD_GROUP: FLOOD_PORTS}, [whose]) + self.members

    def counts(self, of: Mapping[str, int]) -> dict[str, int]:
        """Counters of frames that are in no job."""
        known = {f"{name}(0)": of.get(name, 0) for name in FORWARDING_COUNTERS}
        return {**known, **({self.refused: of.get("refused", 0)} if self.refused else {})}

    def attack(self, system: str, seed: int) -> Conversation:
        """Four frames of each kind of the system's attack."""
        attacked, kinds = systems.find(system), systems.find(system).attack_kinds
        frames = attacked.attack(str(seed), resolve(self.attacked(system)), ATTACKER)
        chosen = [(kinds[kind].counted, frame) for kind, frame in islice(frames, 4 * len(kinds))]
        return self.frames_of_outsiders(chosen)

    def deep_and_short(self) -> Conversation:
        """Up to six tags of every type, and frames cut at every length."""
        return self.frames_of_outsiders(list(deep_and_short(ATTACKER_PORT)))

    def forwarded(self) -> Conversation:
        """A known MAC address, two routes, and ICMP to the aggregator."""
        setup = self.outsiders()
        setup.entries.append(neighbour(worker_mac(3), 3))
        setup.entries.append(route(worker_address(2), worker_mac(2), 2))
        setup.entries.append(route(worker_address(9), worker_mac(9), ATTACKER_PORT))
        counts = {"forwarded": 7, "host_errors": 1, "forged": 3, "unroutable": 1}
        return Conversation(setup, list(forwarded(ATTACKER_PORT)), self.counts(counts))

    def attacked(self, system: str) -> Scenario:
        """Of one job that the attacker is in no part of."""
        keys = {
            key: self.defines[key.upper()]
            for key in ("lanes", "slots")
            if key.upper() in self.defines
        }
        job = JobSection(name="a", workers=("h[123]",))
        return Scenario(
            name="attacked", system=system, switch=Switch(**keys), jobs=(job,), **self.keys
        )


def every() -> list[Rules]:
    """Those of each file beside this one."""
    stems = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    found = (importlib.import_module(f"rules.{stem}") for stem in stems if stem != "__init__")
    return [module.RULES for module in found]
