"""Generates the eBPF program of one direction of a link, which makes the decisions of
`testbed/run/impairments/` in the kernel.

The registers hold: r6 the frame's context, r7 the counters, r8 the frame's number k, and r9 whether
the frame is dropped. r0 to r5 are free for any use. Every rule decides on every frame, so that no
rule changes another's state.

XDP cannot copy a frame to its receivers. It stores how many copies are due. `copier` runs after the
packet sockets on the same processor, and makes the kernel receive the frame that many more times.
Until it is received again, a copy has a multicast address as its source, which no other frame has.
XDP recognizes the copy by that address and restores the original one. It neither counts the copy
nor decides on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agglab.testbed.real import bpf
from agglab.testbed.real.bpf import DW, FRAME, R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, B, W
from agglab.testbed.real.rules import DirectionRules, Rule
from agglab.testbed.run.impairments import ALWAYS, rng, threshold
from agglab.topologies.graph import (
    Corrupt,
    Drop,
    DropList,
    Duplicate,
    GilbertElliott,
    PeriodicDrop,
)

# Words of the counters' map: frames seen, dropped by impairments, changed, lost to a pulled link;
# copies made, and those that have come by again.
SEEN, DROPPED, CORRUPTED, LOST, COPIED, RETURNED = 0, 8, 16, 24, 32, 40
COUNTER_BYTES = 48
# How many dropped frame numbers are kept per direction, from the first on.
NUMBERS_KEPT = 65536
# Gilbert-Elliott: the states of this many last frames are kept, and this many of them are read.
# Frames of a direction come by one processor at a time but for moments when it changes: the state
# of the frame before is then not there yet.
STATES_KEPT = 4096
LOOK_BACK = 16
# The first byte of the source address, and its bit that makes it a group's.
SOURCE_BYTE, GROUP_BIT = 6, 1
SKB_IFINDEX = 40  # in struct __sk_buff


@dataclass(frozen=True)
class Maps:
    """Descriptors of maps. control: one word with a bit for each of `DirectionRules.faults`.
    states, lists: the maps of the rules that need one, by index of the rule. due: how many copies
    of the processor's current frame are to be made."""

    counters: int
    numbers: int
    control: int
    due: int
    states: Mapping[int, int] = field(default_factory=dict)
    lists: Mapping[int, int] = field(default_factory=dict)


def program(rules: DirectionRules, maps: Maps) -> bytes:
    """Returns the code of the direction's program. Raises AssertionError if one of the impairments
    cannot be made with eBPF."""
    a = bpf.Assembler()
    a.alu(R6, "=", R1)
    _point_at(a, maps.counters, "out")
    a.alu(R7, "=", R0)
    if copies(rules):
        _let_copies_pass(a)
    a.alu_imm(R8, "=", 1)
    a.fetch_add(R7, SEEN, R8)
    a.alu_imm(R9, "=", 0)
    for place, rule in enumerate(rules.rules):
        if type(rule.impairment) in _DROPPING:
            _DROPPING[type(rule.impairment)](_Place(a, rules, maps, place, rule))
    _lose_if_down(a, rules, maps)
    a.jump_imm("==", R9, 0, "kept")
    _count_drop(a, maps.numbers)
    a.label("kept")
    for place, rule in enumerate(rules.rules):
        if isinstance(rule.impairment, Corrupt):
            _corrupt(_Place(a, rules, maps, place, rule))
        elif isinstance(rule.impairment, Duplicate):
            _duplicate(_Place(a, rules, maps, place, rule))
    a.label("out")
    a.alu_imm(R0, "=", bpf.XDP_PASS)
    a.exit()
    return a.code()


def copies(rules: DirectionRules) -> int:
    """Returns how many copies of one frame the rules can ask for. If there are any, `copier` is
    needed too."""
    return sum(isinstance(rule.impairment, Duplicate) for rule in rules.rules)


def copier(rules: DirectionRules, maps: Maps) -> bytes:
    """Returns the code of the classifier that runs after the packet sockets. In it, r8 holds the
    first byte of the source address, and r9 the number of copies due."""
    a = bpf.Assembler()
    a.alu(R6, "=", R1)
    _point_at(a, maps.due, "out")
    a.load(R9, R0, 0, DW)
    a.jump_imm("==", R9, 0, "out")
    a.alu_imm(R1, "=", 0)
    a.store(R0, 0, R1, DW)
    _point_at(a, maps.counters, "out")
    a.alu(R7, "=", R0)
    _source_byte(a, bpf.SKB_LOAD_BYTES)
    a.load(R8, FRAME, -8, B)
    a.alu(R1, "=", R8)
    a.alu_imm(R1, "|", GROUP_BIT)
    a.store(FRAME, -8, R1, B)
    _source_byte(a, bpf.SKB_STORE_BYTES)
    for n in range(copies(rules)):
        a.jump_imm("==", R9, n, "mended")
        _receive_again(a, f"received {n}")
    a.label("mended")
    a.store(FRAME, -8, R8, B)
    _source_byte(a, bpf.SKB_STORE_BYTES)
    a.label("out")
    a.alu_imm(R0, "=", bpf.TC_ACT_OK)
    a.exit()
    return a.code()


def _source_byte(a: bpf.Assembler, helper: int) -> None:
    """Emits the move of a byte between the frame's SOURCE_BYTE and FRAME - 8. helper:
    SKB_LOAD_BYTES or SKB_STORE_BYTES."""
    a.alu(R1, "=", R6)
    a.alu_imm(R2, "=", SOURCE_BYTE)
    a.alu(R3, "=", FRAME)
    a.alu_imm(R3, "+", -8)
    a.alu_imm(R4, "=", 1)
    a.alu_imm(R5, "=", 0)
    a.call(helper)
    a.jump_imm(">", R0, 0, "out")


def _receive_again(a: bpf.Assembler, label: str) -> None:
    """Emits code that makes the kernel receive the frame again. The counter of copies is increased
    before this, because another processor may see the copy before this one continues."""
    a.alu_imm(R1, "=", 1)
    a.fetch_add(R7, COPIED, R1)
    a.alu(R1, "=", R6)
    a.load(R2, R6, SKB_IFINDEX, W)
    a.alu_imm(R3, "=", bpf.BPF_F_INGRESS)
    a.call(bpf.CLONE_REDIRECT)
    a.jump_imm("==", R0, 0, label)
    a.alu_imm(R1, "=", -1)
    a.fetch_add(R7, COPIED, R1)
    a.label(label)


def _let_copies_pass(a: bpf.Assembler) -> None:
    a.load(R4, R6, 0, W)
    a.load(R5, R6, 4, W)
    a.alu(R3, "=", R4)
    a.alu_imm(R3, "+", SOURCE_BYTE + 1)
    a.jump(">", R3, R5, "no copy")
    a.load(R3, R4, SOURCE_BYTE, B)
    a.alu(R2, "=", R3)
    a.alu_imm(R2, "&", GROUP_BIT)
    a.jump_imm("==", R2, 0, "no copy")
    a.load(R1, R7, COPIED, DW)
    a.load(R2, R7, RETURNED, DW)
    a.jump(">=", R2, R1, "no copy")
    a.alu_imm(R3, "^", GROUP_BIT)
    a.store(R4, SOURCE_BYTE, R3, B)
    a.alu_imm(R1, "=", 1)
    a.fetch_add(R7, RETURNED, R1)
    a.alu_imm(R0, "=", bpf.XDP_PASS)
    a.exit()
    a.label("no copy")


@dataclass(frozen=True)
class _Place:
    """A rule of a direction while its code is being emitted. Its labels contain its index among the
    rules."""

    a: bpf.Assembler
    rules: DirectionRules
    maps: Maps
    place: int
    rule: Rule

    def label(self, name: str) -> str:
        return f"{name} {self.place}"

    def skip_unless_on(self) -> None:
        """Emits a jump to the end of the rule, which is taken if the rule's fault is not active."""
        if self.rule.fault is not None:
            _jump_unless_on(self.a, self.rules, self.maps, self.rule.fault, self.label("end"))

    def skip_unless_below(self, limit: int) -> None:
        """Emits a jump to the end of the rule, which is taken if the draw in r2 is not below the
        threshold."""
        if limit < ALWAYS:
            self.a.load_imm64(R3, limit)
            self.a.jump(">=", R2, R3, self.label("end"))


def _drop(at: _Place) -> None:
    assert isinstance(at.rule.impairment, Drop)
    at.skip_unless_on()
    _draw(at.a, at.rule.key)
    at.skip_unless_below(threshold(at.rule.impairment.probability))
    at.a.alu_imm(R9, "=", 1)
    at.a.label(at.label("end"))


def _periodic(at: _Place) -> None:
    kind = at.rule.impairment
    assert isinstance(kind, PeriodicDrop)
    at.skip_unless_on()
    at.a.alu(R2, "=", R8)
    at.a.load_imm64(R3, kind.offset)
    at.a.jump("<", R2, R3, at.label("end"))
    at.a.alu(R2, "-", R3)
    at.a.load_imm64(R3, kind.period)
    at.a.alu(R2, "%", R3)
    at.a.load_imm64(R3, kind.count)
    at.a.jump(">=", R2, R3, at.label("end"))
    at.a.alu_imm(R9, "=", 1)
    at.a.label(at.label("end"))


def _listed(at: _Place) -> None:
    at.skip_unless_on()
    at.a.store(FRAME, -8, R8, DW)
    at.a.load_imm64(R1, at.maps.lists[at.place], bpf.PSEUDO_MAP_FD)
    at.a.alu(R2, "=", FRAME)
    at.a.alu_imm(R2, "+", -8)
    at.a.call(bpf.MAP_LOOKUP_ELEM)
    at.a.jump_imm("==", R0, 0, at.label("end"))
    at.a.alu_imm(R9, "=", 1)
    at.a.label(at.label("end"))


def _gilbert_elliott(at: _Place) -> None:
    """Emits the rule for Gilbert-Elliott loss. The rule stores the state of frame k together with
    its number. The states of a fault advance even while the fault is not active."""
    a, kind = at.a, at.rule.impairment
    assert isinstance(kind, GilbertElliott)
    _point_at(a, at.maps.states[at.place], at.label("end"))
    _state_reached(at, threshold(kind.to_bad), threshold(kind.to_good))
    _keep_state(a)
    if at.rule.fault is not None:
        a.store(FRAME, -16, R4, DW)
        at.skip_unless_on()
        a.load(R4, FRAME, -16, DW)
    _draw(a, at.rule.key, 2, 1)
    a.jump_imm("==", R4, 0, at.label("good"))
    at.skip_unless_below(threshold(kind.bad_loss))
    a.jump_imm("always", 0, 0, at.label("drop"))
    a.label(at.label("good"))
    at.skip_unless_below(threshold(kind.good_loss))
    a.label(at.label("drop"))
    a.alu_imm(R9, "=", 1)
    a.label(at.label("end"))


def _state_reached(at: _Place, to_bad: int, to_good: int) -> None:
    """Emits code that sets r4 to the state of frame k (0 good, 1 bad). r0 must point to the states.

    The effect of the draws from frame k - j + 1 to k is a function of two values: r4 if the state
    before them was good, r5 if it was bad. j grows until the state of frame k - j is known.
    """
    a = at.a
    a.alu_imm(R4, "=", 0)
    a.alu_imm(R5, "=", 1)
    for j in range(1, LOOK_BACK + 1):
        _draw(a, at.rule.key, 2, -2 * (j - 1))
        a.alu(R1, "=", R4)
        _skip_at_or_above(a, to_bad, at.label(f"stays good {j}"))
        a.alu(R1, "=", R5)
        a.label(at.label(f"stays good {j}"))
        _skip_at_or_above(a, to_good, at.label(f"stays bad {j}"))
        a.alu(R5, "=", R4)
        a.label(at.label(f"stays bad {j}"))
        a.alu(R4, "=", R1)
        _look_up_state(a, j, at.label("known"))
    a.alu_imm(R3, "=", 0)
    a.label(at.label("known"))
    a.alu_imm(R3, "&", 1)
    a.jump_imm("==", R3, 0, at.label("was good"))
    a.alu(R4, "=", R5)
    a.label(at.label("was good"))


def _look_up_state(a: bpf.Assembler, j: int, known: str) -> None:
    """Emits code that sets r3 to the entry of frame k - j, and jumps to `known` if the entry
    belongs to that frame. An entry is (number + 1) * 2 + state, so that zero is the good state
    before frame 0."""
    _point_at_entry(a, j)
    a.load(R3, R3, 0, DW)
    a.alu(R2, "=", R3)
    a.alu_imm(R2, ">>", 1)
    a.alu(R1, "=", R8)
    a.alu_imm(R1, "-", j - 1)
    a.jump("==", R1, R2, known)


def _keep_state(a: bpf.Assembler) -> None:
    _point_at_entry(a, 0)
    a.alu(R1, "=", R8)
    a.alu_imm(R1, "+", 1)
    a.alu_imm(R1, "<<", 1)
    a.alu(R1, "|", R4)
    a.store(R3, 0, R1, DW)


def _point_at_entry(a: bpf.Assembler, j: int) -> None:
    """Emits code that sets r3 to the address of frame k - j's state. r0 must point to the
    states."""
    a.alu(R3, "=", R8)
    a.alu_imm(R3, "-", j)
    a.alu_imm(R3, "&", STATES_KEPT - 1)
    a.alu_imm(R3, "<<", 3)
    a.alu(R3, "+", R0)


def _skip_at_or_above(a: bpf.Assembler, limit: int, label: str) -> None:
    """Emits a jump that is taken unless the draw in r2 is below the threshold."""
    if limit < ALWAYS:
        a.load_imm64(R3, limit)
        a.jump(">=", R2, R3, label)


def _corrupt(at: _Place) -> None:
    """Emits the rule for corruption. The rule inverts bit draw(2k + 1) mod (8 * frame bytes); bit 0
    is the highest of the first byte."""
    a, kind = at.a, at.rule.impairment
    assert isinstance(kind, Corrupt)
    at.skip_unless_on()
    _draw(a, at.rule.key, 2, 0)
    at.skip_unless_below(threshold(kind.probability))
    a.load(R4, R6, 0, W)
    a.load(R5, R6, 4, W)
    _draw(a, at.rule.key, 2, 1)
    a.alu(R3, "=", R5)
    a.alu(R3, "-", R4)
    a.alu_imm(R3, "<<", 3)
    a.alu(R2, "%", R3)
    a.alu(R3, "=", R2)
    a.alu_imm(R3, ">>", 3)
    # For the verifier: it knows no bound of a remainder, nor of a frame.
    a.jump_imm(">", R3, 0xFFFE, at.label("end"))
    a.alu(R4, "+", R3)
    a.alu(R3, "=", R4)
    a.alu_imm(R3, "+", 1)
    a.jump(">", R3, R5, at.label("end"))
    a.alu_imm(R2, "&", 7)
    a.alu_imm(R1, "=", 0x80)
    a.alu(R1, ">>", R2)
    a.load(R3, R4, 0, B)
    a.alu(R3, "^", R1)
    a.store(R4, 0, R3, B)
    a.alu_imm(R1, "=", 1)
    a.fetch_add(R7, CORRUPTED, R1)
    a.label(at.label("end"))


def _duplicate(at: _Place) -> None:
    assert isinstance(at.rule.impairment, Duplicate) and not at.rule.impairment.delay_us
    at.skip_unless_on()
    _draw(at.a, at.rule.key)
    at.skip_unless_below(threshold(at.rule.impairment.probability))
    _point_at(at.a, at.maps.due, at.label("end"))
    at.a.alu_imm(R1, "=", 1)
    at.a.fetch_add(R0, 0, R1)
    at.a.label(at.label("end"))


_DROPPING: Mapping[type, Callable[[_Place], None]] = {
    Drop: _drop,
    GilbertElliott: _gilbert_elliott,
    PeriodicDrop: _periodic,
    DropList: _listed,
}
EBPF_KINDS = (*_DROPPING, Corrupt, Duplicate)


def _lose_if_down(a: bpf.Assembler, rules: DirectionRules, maps: Maps) -> None:
    """Emits code that drops every frame while the link is down. These frames are not counted as
    dropped by a rule."""
    for number in rules.downs:
        _jump_unless_on(a, rules, maps, number, f"up {number}")
        a.alu_imm(R1, "=", 1)
        a.fetch_add(R7, LOST, R1)
        a.alu_imm(R0, "=", bpf.XDP_DROP)
        a.exit()
        a.label(f"up {number}")


def _count_drop(a: bpf.Assembler, numbers: int) -> None:
    a.alu_imm(R9, "=", 1)
    a.fetch_add(R7, DROPPED, R9)
    a.jump_imm(">=", R9, NUMBERS_KEPT, "drop")
    _record_number(a, numbers)
    a.label("drop")
    a.alu_imm(R0, "=", bpf.XDP_DROP)
    a.exit()


def _jump_unless_on(
    a: bpf.Assembler, rules: DirectionRules, maps: Maps, fault: int, label: str
) -> None:
    _point_at(a, maps.control, label)
    a.load(R1, R0, 0, DW)
    a.alu_imm(R1, ">>", rules.faults.index(fault))
    a.alu_imm(R1, "&", 1)
    a.jump_imm("==", R1, 0, label)


def _point_at(a: bpf.Assembler, array: int, missing: str) -> None:
    """Emits code that sets r0 to the address of a map's only value. missing: the label to which the
    code jumps if there is no value; the kernel's verifier requires this jump."""
    a.alu_imm(R1, "=", 0)
    a.store(FRAME, -4, R1, W)
    a.load_imm64(R1, array, bpf.PSEUDO_MAP_FD)
    a.alu(R2, "=", FRAME)
    a.alu_imm(R2, "+", -4)
    a.call(bpf.MAP_LOOKUP_ELEM)
    a.jump_imm("==", R0, 0, missing)


def _draw(a: bpf.Assembler, key: int, times: int = 1, plus: int = 0) -> None:
    """Emits r2 = output number (times * k + plus) of splitmix64 with the state `key`, as in
    rng.splitmix64. r3 is overwritten."""
    a.alu(R2, "=", R8)
    if times != 1:
        a.alu_imm(R2, "*", times)
    a.alu_imm(R2, "+", plus + 1)
    a.load_imm64(R3, rng.GOLDEN)
    a.alu(R2, "*", R3)
    a.load_imm64(R3, key)
    a.alu(R2, "+", R3)
    steps: Sequence[tuple[int, int | None]] = (
        (30, rng.MULTIPLIER_1),
        (27, rng.MULTIPLIER_2),
        (31, None),
    )
    for shift, multiplier in steps:
        a.alu(R3, "=", R2)
        a.alu_imm(R3, ">>", shift)
        a.alu(R2, "^", R3)
        if multiplier is not None:
            a.load_imm64(R3, multiplier)
            a.alu(R2, "*", R3)


def _record_number(a: bpf.Assembler, numbers: int) -> None:
    """Emits numbers[r9] = r8."""
    a.store(FRAME, -4, R9, W)
    a.store(FRAME, -16, R8, DW)
    a.load_imm64(R1, numbers, bpf.PSEUDO_MAP_FD)
    a.alu(R2, "=", FRAME)
    a.alu_imm(R2, "+", -4)
    a.alu(R3, "=", FRAME)
    a.alu_imm(R3, "+", -16)
    a.alu_imm(R4, "=", 0)
    a.call(bpf.MAP_UPDATE_ELEM)
