"""Who has which slots in a dynamic partition, in whatever order jobs come, move and go."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agglab.testbed.scenario import resolve
from agglab.testbed.schema.jobs import Job
from agglab.testbed.schema.scenario import Scenario
from agglab.testbed.systems.summing.partition import divide
from agglab.testbed.systems.summing.slots import Slots, due

TOTAL = 24


def job(number: int, share: int = 1) -> Job:
    return replace(resolve(Scenario()).jobs[0], number=number, share=share)


def test_a_static_job_has_its_own_place() -> None:
    slots, placed = Slots(TOTAL, {2: (5, 7)}), job(2)
    slots.join(placed)
    assert slots.held(placed) is None
    assert slots.move(placed) == slots.held(placed) == (5, 7)


def test_a_new_job_waits_until_the_others_have_made_room() -> None:
    slots, first, second = Slots(TOTAL, None), job(1), job(2)
    slots.join(first)
    assert slots.move(first) == (0, 24)
    slots.join(second)
    assert slots.move(second) is None
    assert slots.move(first) == (0, 12)
    assert slots.move(second) == (12, 12)
    slots.leave(first)
    assert slots.held(second) == (12, 12)
    assert slots.move(second) == (0, 24)


def test_what_is_free_of_a_part_is_taken_at_once() -> None:
    slots = Slots(TOTAL, None)
    first, second, third = (job(n) for n in (1, 2, 3))
    for each in (first, third):
        slots.join(each)
        slots.move(each)
    slots.move(first)
    slots.move(third)
    assert (slots.held(first), slots.held(third)) == ((0, 12), (12, 12))
    slots.join(second)
    assert slots.move(second) is None
    slots.move(first)
    assert slots.move(second) == (8, 4), "8 to 15 are due, 12 to 15 are still the third's"
    slots.move(third)
    assert slots.move(second) == (8, 8)


def test_shares_are_kept_and_nothing_is_left_over() -> None:
    assert divide(24, [1, 1, 2]) == [6, 6, 12]
    assert divide(10, [1, 1, 1]) == [4, 3, 3]
    assert divide(3, [1, 1000, 1]) == [1, 1, 1]
    assert due([job(3, 1), job(5, 3)], 24) == {3: (0, 6), 5: (6, 18)}


ACTIONS = st.lists(st.tuples(st.sampled_from(["join", "move", "leave"]), st.integers(1, 5)))


@given(ACTIONS, st.lists(st.integers(1, 4), min_size=5, max_size=5))
def test_no_two_jobs_ever_hold_one_slot_and_all_get_their_due_in_the_end(
    actions: list[tuple[str, int]], shares: list[int]
) -> None:
    slots, running = Slots(TOTAL, None), {}
    for action, number in actions:
        if action == "join" and number not in running:
            running[number] = job(number, shares[number - 1])
            slots.join(running[number])
        elif action == "leave" and number in running:
            slots.leave(running.pop(number))
        elif action == "move" and number in running:
            slots.move(running[number])
        held = [slot for t in running.values() if (r := slots.held(t)) for slot in span(r)]
        assert len(set(held)) == len(held) and all(0 <= slot < TOTAL for slot in held)
    ordered = [running[number] for number in sorted(running)]
    for _ in range(2 * len(ordered)):
        for each in ordered:
            slots.move(each)
    if ordered:
        assert {t.number: slots.held(t) for t in ordered} == due(ordered, TOTAL)


def span(held: tuple[int, int]) -> range:
    return range(held[0], held[0] + held[1])
