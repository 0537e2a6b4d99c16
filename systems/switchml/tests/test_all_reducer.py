"""AllReducers over real UDP sockets on loopback, around the switch model."""

import os
import select
import socket
import threading
from itertools import pairwise

import numpy as np
import pytest
from loopback import LoopbackSwitch, worker_bind
from switch_model import JobEntry

from agglab.hosts import AllReduceError, AllReducer, NotFinite, RoundTimeout, ShapeMismatch, driver
from agglab.hosts.coalescing import ReceiveCoalescing
from agglab.hosts.driver import (
    MAX_BATCH,
    MIN_WINDOW,
    default_window,
    first_timeout_s,
)
from agglab.hosts.round_driver import PROGRESS_INTERVAL_NS

LANES, SLOTS = 16, 24
SHARED = np.zeros(3, np.int32)


def in_parallel(workers, work, switch, **options):
    """`work(rank, reducer)` in a thread each; gives what each returned or raised."""
    outcomes = [None] * workers

    def run(rank):
        try:
            with AllReducer(
                3, rank, workers, LANES, SLOTS, worker_bind(rank), switch.address, **options
            ) as reducer:
                outcomes[rank] = work(rank, reducer)
        except BaseException as error:  # pytest's own are no Exceptions
            outcomes[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def run_job(workers, work, loss=0.0, **options):
    with LoopbackSwitch(LANES, {3: JobEntry(workers, SLOTS)}, loss) as switch:
        outcomes = in_parallel(workers, work, switch, **options)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


def integers(rank, shape):
    size = int(np.prod(shape))
    return (np.arange(size) * (rank + 3) - 1000 * rank).astype(np.int32).reshape(shape)


def floats(rank, size):
    return np.random.default_rng(rank).standard_normal(size).astype(np.float32)


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_several_workers_reduce_integers_and_floats_over_sockets(loss):
    def work(rank, reducer):
        return [
            reducer.all_reduce(integers(rank, (7, 123))),
            reducer.all_reduce(floats(rank, 3001)),
            reducer.all_reduce(integers(rank, 5)),
            reducer.stats,
        ]

    outcomes = run_job(3, work, loss)
    exact = sum(floats(rank, 3001).astype(np.float64) for rank in range(3))
    for first, second, third, stats in outcomes:
        np.testing.assert_array_equal(first, sum(integers(rank, (7, 123)) for rank in range(3)))
        np.testing.assert_allclose(second, exact, atol=1e-6)
        np.testing.assert_array_equal(third, sum(integers(rank, 5) for rank in range(3)))
        assert (first.dtype, second.dtype, stats["malformed"]) == (np.int32, np.float32, 0)
        assert stats["sent"] == (1 + 54) + (SLOTS + 188) + (1 + 1) + stats["retransmitted"]
        assert stats["retransmitted"] > 0 or not loss


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 5), (LANES * SLOTS + 1,)])
def test_any_shape_comes_back_as_it_was(shape):
    (total,) = run_job(1, lambda rank, reducer: reducer.all_reduce(integers(1, shape)))
    assert total.shape == shape and total.dtype == np.int32
    np.testing.assert_array_equal(total, integers(1, shape))


def test_arrays_that_are_not_contiguous_go_in_and_out():
    source = integers(0, (40, 6))

    def work(rank, reducer):
        out = np.zeros((6, 80), np.int32)
        returned = reducer.all_reduce(source.T, out=out[:, ::2])
        assert returned.base is out
        reversed_ = reducer.all_reduce(source[::-1, ::2])
        read_only = source.copy()
        read_only.setflags(write=False)
        return out, reversed_, reducer.all_reduce(read_only)

    ((out, reversed_, copied),) = run_job(1, work)
    np.testing.assert_array_equal(out[:, ::2], source.T)
    assert not out[:, 1::2].any()
    np.testing.assert_array_equal(reversed_, source[::-1, ::2])
    np.testing.assert_array_equal(copied, source)


def unaligned(values):
    """The same values, one byte beside where the processor wants them."""
    memory = np.zeros(values.nbytes + 1, np.uint8)
    placed = np.frombuffer(memory, values.dtype, values.size, offset=1)
    placed[:] = values
    assert not placed.flags.aligned
    return placed


@pytest.mark.parametrize("make", [integers, floats])
def test_arrays_that_are_not_aligned_go_in_and_out(make):
    def work(rank, reducer):
        values = unaligned(make(rank, 777))
        out, sums = unaligned(np.zeros(777, values.dtype)), np.zeros(777, np.int32)
        assert reducer.all_reduce(values, out=out, sums=sums) is out
        with pytest.raises(ValueError, match="sums must be flat, contiguous, aligned"):
            reducer.all_reduce(values, sums=unaligned(sums))
        aligned = reducer.all_reduce(make(rank, 777))
        reducer.all_reduce(values, out=values)
        return aligned, out, values

    for aligned, *others in run_job(2, work):
        np.testing.assert_allclose(aligned, make(0, 777) + make(1, 777), atol=1e-6)
        for other in others:
            np.testing.assert_array_equal(other, aligned)


def test_workers_that_do_not_reduce_alike_raise_and_cannot_go_on():
    def work(rank, reducer):
        reducer.all_reduce(integers(rank, 5))
        with pytest.raises(ShapeMismatch) as first:
            reducer.all_reduce(integers(rank, 24 - 4 * (rank == 1)))
        with pytest.raises(AllReduceError, match="workers are out of step; start the job again"):
            reducer.all_reduce(integers(rank, 5))
        return str(first.value)

    own, other = "24 int32 elements", "20 int32 elements"
    head, tail = (
        "round 1 of job 3: this worker reduces",
        "all workers of a job have to reduce alike",
    )
    assert run_job(3, work, loss=0.05) == [
        f"{head} {own}, another {other}; {tail}",
        f"{head} {other}, another {own}; {tail}",
        f"{head} {own}, another {other}; {tail}",
    ]


def test_in_place_and_overlapping_results():
    def work(rank, reducer):
        whole = floats(rank, 1000)
        assert reducer.all_reduce(whole, out=whole) is whole
        shifted = integers(rank, 1500)
        reducer.all_reduce(shifted[:-500], out=shifted[500:])
        return whole, shifted

    outcomes = run_job(2, work)
    exact = floats(0, 1000).astype(np.float64) + floats(1, 1000)
    for whole, shifted in outcomes:
        np.testing.assert_allclose(whole, exact, atol=1e-6)
        np.testing.assert_array_equal(
            shifted[500:], integers(0, 1500)[:-500] + integers(1, 1500)[:-500]
        )


def test_the_integers_that_the_switch_returned_are_to_be_had():
    def work(rank, reducer):
        sums = np.zeros(100, np.int32)
        total = reducer.all_reduce(np.full(100, 1.5, np.float32), sums=sums)
        return sums, total

    sums, total = run_job(2, work)[0]
    # Exponent field 127 and 2 workers: scale 2^(30 - 1).
    assert sums.tolist() == [3 * 2**29] * 100 and total.tolist() == [3.0] * 100


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), "cannot reduce dtype float64: convert to int32 or float32"),
        (np.zeros(3, ">f4"), "cannot reduce dtype >f4"),
        (np.zeros(3, np.uint32), "cannot reduce dtype uint32"),
        ([1, 2], "cannot reduce dtype int64"),
        (np.array([None]), "cannot reduce dtype object"),
    ],
)
def test_other_dtypes_are_a_type_error_and_the_reducer_stays_usable(array, message):
    def work(rank, reducer):
        with pytest.raises(TypeError, match=message):
            reducer.all_reduce(array)
        return reducer.all_reduce(np.ones(3, np.int32))

    assert run_job(1, work)[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "options",
    [
        {"out": np.zeros(3, np.float32)},
        {"out": np.zeros(4, np.int32)},
        {"out": np.zeros((3, 1), np.int32)},
        {"sums": np.zeros(4, np.int32)},
        {"sums": np.zeros(3, np.int64)},
        {"sums": np.zeros(6, np.int32)[::2]},
        {"out": SHARED, "sums": SHARED},
        {"out": [0, 0, 0]},
        {"sums": [0, 0, 0]},
    ],
)
def test_results_that_do_not_fit_are_a_value_error_or_a_type_error(options):
    error = TypeError if any(type(array) is list for array in options.values()) else ValueError

    def work(rank, reducer):
        with pytest.raises(error, match=r"^(out|sums) "):
            reducer.all_reduce(np.ones(3, np.int32), **options)

    run_job(1, work)


def test_a_matrix_takes_the_result():
    def work(rank, reducer):
        out = np.zeros((1, 3), np.float32).view(np.matrix)
        assert reducer.all_reduce(np.ones((1, 3), np.float32), out=out) is out
        return out

    assert run_job(2, work)[1].tolist() == [[2, 2, 2]]


def test_not_finite_values_are_an_error_and_the_next_call_works():
    def work(rank, reducer):
        values = floats(rank, 500)
        if rank == 1:
            values[321] = np.nan
        with pytest.raises(NotFinite) as error:
            reducer.all_reduce(values, out=values)
        return str(error.value), reducer.all_reduce(integers(rank, 5))

    (elsewhere, first), (here, _) = run_job(2, work)
    assert here == "Inf or NaN in chunk 20 of job 3: this worker's index 321"
    assert (
        elsewhere == "Inf or NaN in chunk 20 of job 3: not at this worker, but at another of "
        "the job's"
    )
    np.testing.assert_array_equal(first, integers(0, 5) + integers(1, 5))


@pytest.mark.parametrize(("workers", "value"), [(2, 3e38), (3, 1.5e38)])
def test_a_sum_beyond_float32_is_an_error_with_the_smallest_exponent_that_can_make_one(
    workers, value
):
    """The exponents of these values are the smallest whose sums are checked."""

    def work(rank, reducer):
        values = np.ones(500, np.float32)
        values[321] = value
        with pytest.raises(NotFinite) as error:
            reducer.all_reduce(values, out=values)
        return str(error.value)

    message = "the sum at index 321 (chunk 20 of job 3) is beyond float32's range"
    assert run_job(workers, work) == [message] * workers


def test_a_missing_worker_is_a_timeout_and_ends_the_reducer():
    with LoopbackSwitch(LANES, {3: JobEntry(2, SLOTS)}) as switch:
        bind = worker_bind(0)
        with AllReducer(3, 0, 2, LANES, SLOTS, bind, switch.address, give_up_s=0.05) as reducer:
            with pytest.raises(RoundTimeout) as error:
                reducer.all_reduce(integers(0, 40))
            with pytest.raises(AllReduceError, match="a round before this one did not end"):
                reducer.all_reduce(integers(0, 40))
    assert str(error.value) == (
        "no result for chunks 0-2 (slots 0-2) of job 3 after 0.05 s; "
        f"no packet at all came from 127.0.0.254:{switch.address[1]}"
    )
    assert error.value.missing == [(0, 2)]


def unused_address():
    """Where nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.254", 0))
        return taken.getsockname()


def test_a_refused_port_is_named_in_the_timeout():
    address = unused_address()
    with (
        AllReducer(3, 0, 2, LANES, SLOTS, worker_bind(0), address, give_up_s=0.3) as reducer,
        pytest.raises(RoundTimeout, match=r"the network's last error was: Connection refused$"),
    ):
        reducer.all_reduce(integers(0, 4000))


def test_an_error_about_an_earlier_datagram_is_counted_and_loses_no_later_one():
    address = unused_address()
    with (
        AllReducer(3, 0, 2, LANES, SLOTS, worker_bind(0), address, give_up_s=0.05) as reducer,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as aggregator,
    ):
        reducer._link.socket.send(b"")
        refused = select.poll()
        refused.register(reducer._link.socket, select.POLLERR)
        assert refused.poll(10_000)
        aggregator.bind(address)
        with pytest.raises(RoundTimeout):
            reducer.all_reduce(integers(0, 40))
        stats = reducer.stats
    assert stats["network_errors"] == 1 and stats["unsent"] == 0


def test_datagrams_that_are_refused_as_too_long_are_counted_and_left_to_the_timers():
    """A local socket says so of what exceeds its buffer, as an interface does of its MTU."""
    lanes, slots = 4000, 2
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = unused_address()
    with (
        ours,
        theirs,
        AllReducer(3, 0, 2, lanes, slots, worker_bind(0), address, give_up_s=0.3) as reducer,
    ):
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < 4 * lanes
        os.dup2(ours.fileno(), reducer._link.socket.fileno())
        with pytest.raises(RoundTimeout, match=r"last error was: Message too long$"):
            reducer.all_reduce(integers(0, slots * lanes))
        stats = reducer.stats
    assert stats["network_errors"] == 2 * stats["unsent"] > 0  # each is tried twice


def test_datagrams_beyond_what_the_interface_takes_are_refused_at_the_start():
    with pytest.raises(
        AllReduceError, match=r"^datagrams of 80012 bytes \(80040 of IPv4\) exceed the MTU of"
    ):
        driver._check_fits(worker_bind(0), ("127.0.0.254", 7), 80_012)


def test_how_long_a_datagram_may_be_is_not_what_icmp_messages_say():
    with AllReducer(3, 0, 1, LANES, SLOTS, worker_bind(0), unused_address()) as reducer:
        discovery = reducer._link.socket.getsockopt(socket.IPPROTO_IP, 10)  # IP_MTU_DISCOVER
    assert discovery == 3  # IP_PMTUDISC_PROBE, linux/in.h


def test_an_address_that_is_not_ours_is_one_clear_line():
    with pytest.raises(
        AllReduceError, match=r"^cannot use 192\.0\.2\.1:5 to reach 10\.0\.255\.254"
    ):
        AllReducer(3, 0, 1, 4, 1, ("192.0.2.1", 5))


def test_foreign_and_damaged_results_are_counted_and_change_no_sum():
    with LoopbackSwitch(LANES, {3: JobEntry(2, SLOTS)}) as switch:
        switch.tamper = lambda result: [result[:-1], b"", result, b"x" * 2000, result]
        outcomes = in_parallel(
            2,
            lambda rank, reducer: (reducer.all_reduce(integers(rank, 2000)), reducer.stats),
            switch,
        )
    for total, stats in outcomes:
        np.testing.assert_array_equal(total, integers(0, 2000) + integers(1, 2000))
        assert stats["malformed"] >= 3 * 125 - 10 and stats["duplicates"] >= 124


def test_a_port_beyond_the_range_is_one_clear_line():
    with pytest.raises(AllReduceError, match=r"^cannot use 127\.0\.0\.1:70000 to reach .*0-65535"):
        AllReducer(3, 0, 1, 4, 1, ("127.0.0.1", 70000))


def test_a_closed_reducer_says_so_and_keeps_its_counts():
    with LoopbackSwitch(LANES, {3: JobEntry(1, SLOTS)}) as switch:
        with AllReducer(3, 0, 1, LANES, SLOTS, worker_bind(0), switch.address) as reducer:
            reducer.all_reduce(integers(0, 40))
            stats = reducer.stats
        reducer.close()
        assert reducer.stats == stats and stats["received"] == 4
        with pytest.raises(AllReduceError, match="job 3: the reducer is closed"):
            reducer.all_reduce(integers(0, 40))


def test_results_that_find_no_room_are_counted():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as aggregator:
        aggregator.bind(("127.0.0.254", 0))
        address = aggregator.getsockname()
        with AllReducer(3, 0, 1, LANES, SLOTS, worker_bind(0), address) as reducer:
            worker = reducer._link.socket.getsockname()
            for _ in range(10_000):
                aggregator.sendto(b"", worker)
            assert 0 < reducer.stats["kernel_drops"] < 10_000


def test_a_window_larger_than_one_system_call_can_send():
    slots, arrived = 300, []
    with (
        LoopbackSwitch(1, {3: JobEntry(1, slots)}) as switch,
        AllReducer(3, 0, 1, 1, slots, worker_bind(0), switch.address) as reducer,
    ):
        process = switch.model.process

        def record(rank, payload):
            arrived.append(int.from_bytes(payload[4:6], "big"))
            return process(rank, payload)

        switch.model.process = record
        total = reducer.all_reduce(integers(0, 2 * slots))
    np.testing.assert_array_equal(total, integers(0, 2 * slots))
    assert arrived[:slots] == list(range(slots))


def test_a_rank_outside_the_job_is_refused():
    with pytest.raises(ValueError, match="rank is 2; it must be 0 to 1"):
        AllReducer(0, 2, 2, 4, 1, worker_bind(0))


@pytest.mark.parametrize("name", ["give_up_s", "first_timeout_s", "deadline_s"])
@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), 1e12])
def test_times_that_are_not_positive_and_finite_are_refused(name, seconds):
    with pytest.raises(ValueError, match=rf"{name} is \S+; it must be 1e-09 to 1e\+09"):
        AllReducer(0, 0, 2, 4, 1, worker_bind(0), **{name: seconds})


def test_progress_is_reported_while_a_round_waits():
    seen = []
    with LoopbackSwitch(LANES, {3: JobEntry(2, SLOTS)}) as switch:
        bind = worker_bind(0)
        options = {"give_up_s": 0.7, "on_progress": seen.append}
        with (
            AllReducer(3, 0, 2, LANES, SLOTS, bind, switch.address, **options) as reducer,
            pytest.raises(RoundTimeout),
        ):
            reducer.all_reduce(integers(0, 40))
    assert seen
    assert all(later - at >= PROGRESS_INTERVAL_NS for at, later in pairwise(seen))


def test_the_default_window_covers_ten_milliseconds_of_the_link():
    assert default_window(1078, 128) == 128
    assert default_window(1078, 10_000, 100e6) == 116
    assert default_window(1078, 64, 100e6) == 64
    assert default_window(9014, 10_000, 1e9) == 139
    assert default_window(1078, 128, 1e6) == MIN_WINDOW


def test_the_default_window_covers_delays_beyond_five_milliseconds():
    """At 86.24 Mbit/s ten frames of 1078 bytes take a millisecond."""
    assert default_window(1078, 10_000, 8.624e7, delays_s=0.005) == 100
    assert default_window(1078, 10_000, 8.624e7, delays_s=0.024) == 290
    assert default_window(1078, 64, 8.624e7, delays_s=0.024) == 64


def test_the_first_timeout_is_twenty_windows_on_the_link():
    assert first_timeout_s(32, 256, 100e6) == pytest.approx(20 * 32 * 1078 * 8 / 100e6)
    assert first_timeout_s(16, 256, 1e9) == 0.020
    assert first_timeout_s(128, 256, 100e6) == first_timeout_s(1, 1) == 0.100


def test_the_first_timeout_is_at_least_two_round_trips_of_delays():
    assert first_timeout_s(16, 256, 1e9, delays_s=0.010) == 0.020
    assert first_timeout_s(16, 256, 1e9, delays_s=0.024) == 0.048
    assert first_timeout_s(128, 256, 100e6, delays_s=0.3) == first_timeout_s(1, 1, None, 0.3) == 0.6


def test_results_gather_for_a_quarter_of_the_window_and_not_long():
    coalescing = ReceiveCoalescing()
    assert coalescing.wait_ns(128) == 0
    now_ns = 1_000_000_000
    for _ in range(200):
        now_ns += 80_000
        coalescing.results_arrived(now_ns, 8)
    assert 7_000 * 16 <= coalescing.wait_ns(64) <= 10_000 * 16
    assert coalescing.wait_ns(3) == 0
    assert coalescing.wait_ns(10**6) == 1_000_000
    assert MAX_BATCH >= 64


def test_results_that_come_in_buffers_gather_only_after_less_than_a_full_one():
    single, buffered = ReceiveCoalescing(), ReceiveCoalescing(buffer_packets=7)
    for coalescing in (single, buffered):
        coalescing.results_arrived(1_000_000_000, 6)
    assert 0 < single.wait_ns(28) == buffered.wait_ns(28) < 1_000_000
    assert buffered.wait_ns(28) == buffered.wait_ns(1000)
    assert buffered.wait_ns(24) == 0  # the batch was a quarter of these
    buffered.results_arrived(1_000_100_000, 7)
    assert buffered.wait_ns(1000) == 0


def test_without_privileges_the_buffers_are_as_large_as_the_machine_allows():
    class Unprivileged:
        def __init__(self):
            self.options = {}

        def setsockopt(self, level, option, value):
            if option in (driver.SO_RCVBUFFORCE, driver.SO_SNDBUFFORCE):
                raise PermissionError
            self.options[level, option] = value

    sock = Unprivileged()
    driver._set_buffer(sock, driver.SO_RCVBUFFORCE, socket.SO_RCVBUF, 5000)
    assert sock.options == {(socket.SOL_SOCKET, socket.SO_RCVBUF): 5000}
