"""When the worker sends again, by the millisecond, and how long rounds take on links of a rate."""

import heapq
import random
from dataclasses import replace

import numpy as np
import pytest
from switch_model import JobEntry, SwitchModel

from agglab.hosts.errors import RoundTimeout
from agglab.hosts.wire import Batch, Chunk
from agglab.systems.switchml.worker import Job, Timing, Worker

MS = 1_000_000


class Conversation:
    """A worker whose results the test hands in; times in ms."""

    def __init__(self, window=4, dtype=np.int32, chunks=100, **timing):
        """chunks: of each slot. An opening in each slot if they are floats, in one if not."""
        self.worker = Worker(Job(0, 2, 1, window, window), Timing(**timing))
        self.values = np.zeros(chunks * window, dtype)
        self.begin(0)

    def begin(self, now_ms):
        self.worker.begin(round(now_ms * MS), self.values, np.empty_like(self.values))

    def poll(self, now_ms):
        return self.worker.poll(round(now_ms * MS)).tolist()

    def result(self, now_ms, *slots, attempt=None):
        """Of the last attempt, unless it is told."""
        datagrams = []
        for slot in slots:
            sent = Chunk.parse(self.worker.datagram(slot), 1)
            answered = sent.attempt if attempt is None else attempt
            datagrams.append(replace(sent, result=True, attempt=answered).emit())
        assert self.worker.on_datagrams(round(now_ms * MS), Batch.of(datagrams, 1)) == len(slots)

    def answer(self, now_ms, *slots, attempt=None):
        """Results, and what the worker sends on them."""
        self.result(now_ms, *slots, attempt=attempt)
        return self.poll(now_ms)

    @property
    def rto_ms(self):
        return self.worker.rto_ns / MS

    @property
    def deadline_ms(self):
        return self.worker.deadline_ns / MS

    def silence_until(self, end_ms):
        """(time in ms, slots) of everything sent up to then without a result."""
        sent = []
        while self.worker.deadline_ns <= end_ms * MS:
            now_ms = self.deadline_ms
            if slots := self.poll(now_ms):
                sent.append((now_ms, slots))
            assert self.deadline_ms > now_ms, "a deadline that has passed is still the next"
        return sent


def test_before_any_measurement_the_timeout_is_100_ms_and_doubles_up_to_a_second():
    talk = Conversation(window=1)
    assert talk.poll(0) == [0]
    times = [time for time, _ in talk.silence_until(6000)]
    assert times == [100, 300, 700, 1500, 2500, 3500, 4500, 5500]


def test_the_timeout_follows_the_round_trip_as_in_rfc_6298():
    talk = Conversation(window=1)
    talk.poll(0)
    talk.answer(40, 0)
    assert talk.rto_ms == 40 + 4 * 20
    talk.answer(80, 0)  # the first with values: what the opening took is forgotten
    assert talk.rto_ms == 40 + 4 * 20
    talk.answer(120, 0)
    assert talk.rto_ms == 40 + 4 * 15
    talk.answer(200, 0)
    assert talk.rto_ms == 45 + 4 * (15 + (40 - 15) / 4)


def test_what_openings_took_says_nothing_of_packets_with_values():
    """One opening is lost; then values take thirty times as long as openings did, and all of them
    are waited for."""
    talk = Conversation(dtype=np.float32)
    assert talk.poll(0) == [0, 1, 2, 3]
    assert talk.answer(0.1, 1, 2, 3) == [1, 2, 3]
    assert talk.poll(talk.deadline_ms) == [0] and talk.deadline_ms < 1
    assert talk.answer(0.5, 0, attempt=1) == [0]
    assert talk.silence_until(3) == []
    assert talk.answer(3.1, 0, 1, 2, 3) == [0, 1, 2, 3]
    assert talk.worker.counters["retransmitted"] == 1


def test_where_openings_were_lost_single_packets_with_values_feel_for_an_answer():
    """The first answer tells how long values take. Until then, one packet is sent again after 1/32
    of the first timeout, the next after 1/16, and so on."""
    talk = Conversation(dtype=np.float32, initial_rto_ns=64 * MS, min_rto_ns=200 * MS)
    talk.poll(0)
    assert talk.answer(0.1, 1, 2, 3) == [1, 2, 3]
    assert talk.poll(talk.deadline_ms) == [0]  # overtaken
    talk.answer(1, 0, attempt=1)
    probes = [(time_ms, slots) for time_ms, slots in talk.silence_until(100)]
    assert probes == [(3, [0]), (5, [0]), (9, [0]), (17, [0]), (33, [0])]
    assert talk.worker.counters["timeouts"] == 5


def test_nothing_feels_for_an_answer_before_the_links_delays_allow_one():
    """The probes are spread over the time between the delays, 32 ms, and the first timeout."""
    timing = {"initial_rto_ns": 64 * MS, "min_rto_ns": 200 * MS, "delays_ns": 32 * MS}
    talk = Conversation(dtype=np.float32, **timing)
    talk.poll(0)
    assert talk.answer(0.1, 1, 2, 3) == [1, 2, 3]
    assert talk.poll(talk.deadline_ms) == [0]  # overtaken
    talk.answer(1, 0, attempt=1)
    times = [time_ms for time_ms, _ in talk.silence_until(100)]
    assert times == [34, 35, 37, 41, 49]


def test_without_a_loss_nothing_feels_for_an_answer():
    talk = Conversation(dtype=np.float32, initial_rto_ns=64 * MS, min_rto_ns=200 * MS)
    talk.poll(0)
    talk.answer(1, 0, 1, 2, 3)
    assert talk.silence_until(100) == []


def test_once_values_were_answered_nothing_feels_for_an_answer():
    talk = Conversation(dtype=np.float32, initial_rto_ns=64 * MS, min_rto_ns=200 * MS)
    talk.poll(0)
    talk.answer(0.1, 1, 2, 3)
    talk.poll(talk.deadline_ms)
    talk.answer(1, 0, attempt=1)
    talk.answer(2, 0, 1, 2, 3)
    assert [slots for _, slots in talk.silence_until(5)] == [[0, 1, 2, 3]]
    assert talk.worker.counters["timeouts"] == 4


def test_openings_of_later_rounds_do_not_change_the_timeout():
    talk = Conversation(dtype=np.float32, chunks=1)
    for now_ms in (0.1, 20.1):
        talk.poll(0)
        talk.answer(now_ms, 0, 1, 2, 3)
    known_ms = talk.rto_ms
    talk.begin(100)
    talk.poll(100)
    talk.answer(100.1, 0, 1, 2, 3)
    assert talk.rto_ms == known_ms == 20 + 4 * 10


@pytest.mark.parametrize(("rtt_ms", "rto_ms"), [(0.1, 10), (8, 12), (5000, 1000)])
def test_the_timeout_keeps_its_limits_and_the_room_for_gathering(rtt_ms, rto_ms):
    talk = Conversation(window=1, max_rto_ns=1000 * MS, initial_rto_ns=10_000 * MS)
    talk.poll(0)
    for count in range(1, 60):
        talk.answer(count * rtt_ms, 0)
    assert talk.rto_ms == pytest.approx(rto_ms, abs=0.01)


def test_a_batch_gives_one_sample_that_of_its_oldest_packet():
    talk = Conversation()
    talk.poll(0)
    talk.answer(30, 0, 1, 2)
    assert talk.rto_ms == 30 + 4 * 15


@pytest.mark.parametrize(("attempt", "rtt_ms"), [(2, 50), (0, 350)])
def test_the_result_tells_which_attempt_it_measures(attempt, rtt_ms):
    talk = Conversation(window=1)
    talk.poll(0)
    assert talk.poll(100) == talk.poll(300) == [0]
    assert Chunk.parse(talk.worker.datagram(0), 1).attempt == 2
    talk.answer(350, 0, attempt=attempt)
    assert talk.rto_ms == min(1000, rtt_ms + 4 * rtt_ms / 2)
    assert Chunk.parse(talk.worker.datagram(0), 1).attempt == 0


def test_an_attempt_that_may_be_another_workers_measures_nothing():
    talk = Conversation(window=1)
    talk.poll(0)
    talk.poll(100)
    talk.poll(300)
    talk.answer(350, 0, attempt=1)
    assert talk.rto_ms == 100


def test_results_of_any_slot_put_off_the_others_timers():
    talk = Conversation()
    talk.poll(0)
    for now_ms, slot in ((60, 0), (120, 1), (180, 2)):
        assert talk.answer(now_ms, slot) == [slot]
    assert talk.poll(181) == []


def settled(window, rtt_ms=20):
    """A conversation with a timeout of 24 ms, and the time at which all slots were last sent."""
    talk = Conversation(window=window)
    talk.poll(0)
    for count in range(1, 60):
        talk.answer(count * rtt_ms, *range(window))
    assert talk.rto_ms == pytest.approx(rtt_ms + 4, abs=0.01)
    return talk, 59 * rtt_ms


def test_an_overtaken_packet_is_sent_again_a_quarter_more_than_the_round_trip_after_it_was_sent():
    talk, start = settled(window=8)
    assert talk.answer(start + 20, 1, 2, 3, 4, 5, 6, 7) == [1, 2, 3, 4, 5, 6, 7]
    assert talk.deadline_ms == pytest.approx(start + 25, abs=0.01)
    assert talk.poll(start + 24.9) == []
    assert talk.poll(start + 25.1) == [0]
    counters = talk.worker.counters
    assert (counters["retransmitted"], counters["timeouts"]) == (1, 0)


def test_one_later_result_makes_a_packet_overtaken_and_an_earlier_one_none():
    talk, start = settled(window=8)
    assert talk.answer(start + 20, 1) == [1]
    assert talk.poll(start + 25.1) == [0]
    talk, start = settled(window=8)
    assert talk.answer(start + 20, 0) == [0]
    assert talk.poll(start + 25.1) == []


@pytest.mark.parametrize(
    ("rtts_ms", "gap_ms"),
    [
        ((30, 50, 50), 2 * (32.5 + 17.5 / 8)),
        ((40,) * 4, 40 + 80 * 0.75**3),
        ((0.01,) * 9, 0.1),
    ],
)
def test_the_gap_timeout_follows_the_deviation_up_to_twice_the_round_trip(rtts_ms, gap_ms):
    talk = Conversation(window=2)
    talk.poll(0)
    now_ms = 0
    for rtt_ms in rtts_ms[:-1]:
        now_ms += rtt_ms
        talk.answer(now_ms, 0, 1)
    talk.answer(now_ms + rtts_ms[-1], 1)
    assert talk.deadline_ms - now_ms == pytest.approx(gap_ms, rel=0.02)


def test_an_overtaken_packet_is_sent_again_without_back_off_while_results_come():
    talk, start = settled(window=8)
    others = range(1, 8)
    resent = []
    for step in range(1, 200):
        now_ms = start + 1.0 * step
        slots = talk.answer(now_ms, *others) if step % 20 == 0 else talk.poll(now_ms)
        if 0 in slots:
            resent.append(step)
    # Sent after what is answered 20 ms later, overtaken by what is answered 40 ms later.
    assert resent == [25, 60, 100, 140, 180]


class LateOrLost:
    """Slots 1 to 7 are always answered 20 ms after they were sent, all at once; slot 0 not."""

    def __init__(self):
        self.talk, self.others_ms = settled(window=8)
        self.sent_ms = self.others_ms

    def answer_others_until(self, end_ms):
        while self.others_ms + 20 <= end_ms:
            self.others_ms += 20
            self.talk.answer(self.others_ms, 1, 2, 3, 4, 5, 6, 7)

    def answer(self, now_ms, attempt=None):
        self.answer_others_until(now_ms)
        assert 0 in self.talk.answer(now_ms, 0, attempt=attempt)
        self.sent_ms = now_ms

    def resent_ms(self):
        """When slot 0's packet is sent again, being overtaken."""
        while self.others_ms < self.sent_ms + 20:
            self.answer_others_until(self.others_ms + 20)
        now_ms = self.talk.deadline_ms
        assert self.talk.poll(now_ms) == [0]
        return now_ms


@pytest.mark.parametrize(("late_ms", "gap_ms"), [(12, 37), (14, 39), (50, 40)])
def test_a_result_that_was_late_and_not_lost_widens_the_gap_to_twice_the_round_trip(
    late_ms, gap_ms
):
    path = LateOrLost()
    path.answer(path.sent_ms + 20 + late_ms, attempt=0)
    assert path.resent_ms() - path.sent_ms == pytest.approx(gap_ms, abs=0.05)


def test_losses_make_the_gap_narrower_again():
    path = LateOrLost()
    path.answer(path.sent_ms + 34, attempt=0)
    gaps_ms = []
    for _ in range(4):
        resent_ms = path.resent_ms()
        gaps_ms.append(resent_ms - path.sent_ms)
        path.answer(resent_ms + 20)
    assert gaps_ms == pytest.approx([25 + 14 * (15 / 16) ** n for n in range(4)], abs=0.05)


def test_what_waited_for_somebody_elses_loss_measures_nothing():
    talk, start = settled(window=8)
    before = talk.rto_ms
    talk.answer(start + 20, 1, 2, 3, 4, 5, 6, 7)
    talk.result(start + 23.9, 0)
    assert talk.rto_ms == pytest.approx(before, abs=0.01)


def test_after_a_silence_eight_packets_are_sent_again_and_then_ever_more_rarely():
    talk, start = settled(window=20)
    sent = talk.silence_until(start + 2000)
    assert [slots for _, slots in sent] == [list(range(8))] * len(sent)
    steps = [24 * (2**n - 1) for n in range(1, 6)]
    steps += [steps[-1] + 24 * 16 * n for n in (1, 2, 3)]
    assert [time - start for time, _ in sent] == pytest.approx(steps, rel=0.01)
    assert talk.worker.counters["timeouts"] == 8 * len(sent)


@pytest.mark.parametrize(("gap", "silence_ms"), [(False, 10), (True, 2.5)])
def test_silence_is_shorter_where_results_have_left_gaps(gap, silence_ms):
    talk = Conversation(window=8)
    talk.poll(0)
    for count in range(1, 60):
        talk.answer(count * 2, *range(8))
    if gap:
        talk.answer(120, *range(1, 8))
        assert talk.poll(120.6) == [0]
    talk.answer(122, *range(8))
    ((now_ms, slots),) = talk.silence_until(122 + 1.5 * silence_ms)
    assert slots == list(range(8))
    assert now_ms == pytest.approx(122 + silence_ms, abs=0.5)


def test_all_lost_at_once_is_repaired_by_what_overtakes():
    talk, start = settled(window=100)
    ((now_ms, probes),) = talk.silence_until(start + 30)
    assert talk.answer(now_ms + 20, *probes) == [*probes, *range(8, 100)]


def test_giving_up_comes_before_a_retransmission_at_the_same_time():
    talk = Conversation(window=1, give_up_ns=100 * MS)
    talk.poll(0)
    with pytest.raises(RoundTimeout):
        talk.poll(100)


class RatedNetwork:
    """Links with a rate: a packet takes 123 us (365 lanes at 100 Mbit/s), each way, in order; each
    driver lets results gather for 1 ms."""

    PACKET_NS, PROPAGATION_NS, GATHER_NS = 123_000, 50_000, MS

    def __init__(self, workers, window, chunks, loss, seed):
        self.loss, self.random = loss, random.Random(seed)
        job = Job(0, workers, 1, window, window)
        self.switch = SwitchModel(1, {0: JobEntry(workers, window)})
        self.workers = [Worker(job) for _ in range(workers)]
        self.chunks = chunks
        self.inputs = [np.arange(chunks, dtype=np.int32) * (rank + 1) for rank in range(workers)]
        self.outs = [np.empty(chunks, np.int32) for _ in range(workers)]
        self.free_ns = {}
        self.inbox = [[] for _ in range(workers)]
        self.events, self.number = [], 0

    def run(self):
        """Duration of the round over the time the packets need on one link. Fails the test where
        it takes ten times that."""
        for rank, worker in enumerate(self.workers):
            worker.begin(0, self.inputs[rank], self.outs[rank])
            self._poll(rank, 0)
        now_ns = 0
        while not all(worker.done for worker in self.workers):
            now_ns, _, handle, rank, data = heapq.heappop(self.events)
            assert now_ns < 10 * self.chunks * self.PACKET_NS, "not finished in time"
            handle(rank, now_ns, data)
        expected = sum(self.inputs)
        assert all((out == expected).all() for out in self.outs)
        return now_ns / (self.chunks * self.PACKET_NS)

    def _at(self, time_ns, handle, rank, data=b""):
        self.number += 1
        heapq.heappush(self.events, (time_ns, self.number, handle, rank, data))

    def _transmit(self, direction, rank, now_ns, handle, data):
        free_ns = max(self.free_ns.get((direction, rank), 0), now_ns) + self.PACKET_NS
        self.free_ns[direction, rank] = free_ns
        if self.random.random() >= self.loss:
            self._at(free_ns + self.PROPAGATION_NS, handle, rank, data)

    def _poll(self, rank, now_ns, _data=b""):
        worker = self.workers[rank]
        for slot in worker.poll(now_ns):
            self._transmit("up", rank, now_ns, self._at_switch, worker.datagram(slot))
        if not worker.done:
            assert worker.deadline_ns > now_ns, "a deadline that has passed is still the next"
            self._at(worker.deadline_ns, self._timer, rank)

    def _timer(self, rank, now_ns, _data):
        if not self.workers[rank].done and now_ns >= self.workers[rank].deadline_ns:
            self._poll(rank, now_ns)

    def _at_switch(self, rank, now_ns, data):
        for target, result in self.switch.process(rank, data):
            self._transmit("down", target, now_ns, self._at_worker, result)

    def _at_worker(self, rank, now_ns, data):
        if not self.inbox[rank]:
            self._at(now_ns + self.GATHER_NS, self._gathered, rank)
        self.inbox[rank].append(data)

    def _gathered(self, rank, now_ns, _data):
        datagrams, self.inbox[rank] = self.inbox[rank], []
        self.workers[rank].on_datagrams(now_ns, Batch.of(datagrams, 1))
        self._poll(rank, now_ns)


@pytest.mark.parametrize("workers", [2, 8])
def test_without_loss_a_round_takes_what_the_link_needs_and_nothing_is_sent_twice(workers):
    network = RatedNetwork(workers, 128, 2740, 0, 0)
    assert network.run() < 1.006
    assert sum(worker.counters["retransmitted"] for worker in network.workers) == 0


@pytest.mark.long(but=["128-0.001-1.06"])
@pytest.mark.parametrize(
    ("window", "loss", "most"), [(128, 0.001, 1.06), (128, 0.01, 1.25), (32, 0.01, 1.25)]
)
def test_losses_cost_little_more_than_what_is_sent_again(window, loss, most):
    ratios = sorted(RatedNetwork(4, window, 2740, loss, seed).run() for seed in range(5))
    assert ratios[2] < most
    assert ratios[4] < most + 0.15


def test_bytes_are_those_of_frames_with_ethernet_ipv4_and_udp():
    talk = Conversation(window=4)
    frames_bytes = [14 + 20 + 8 + len(talk.worker.datagram(slot)) for slot in talk.poll(0)]
    talk.result(20, 0, 1)
    counters = talk.worker.counters
    assert (counters["sent"], counters["bytes_sent"]) == (4, sum(frames_bytes))
    assert (counters["received"], counters["bytes_received"]) == (2, sum(frames_bytes[:2]))


def test_the_attempt_stays_at_its_largest():
    """It would be 0 again after 256, and a result of long ago would measure as a fresh one."""
    talk = Conversation(window=1, give_up_ns=10**15)
    talk.poll(0)
    attempts = []
    while len(attempts) < 300:
        assert talk.poll(talk.deadline_ms) == [0]
        attempts.append(Chunk.parse(talk.worker.datagram(0), 1).attempt)
    assert attempts == [min(count, 255) for count in range(1, 301)]
    talk.answer(talk.deadline_ms, 0, attempt=0)
    assert Chunk.parse(talk.worker.datagram(0), 1).attempt == 0
