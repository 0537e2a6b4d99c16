"""What Gloo's worker knows of its connections: TCP_INFO, progress, who is missing."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from agglab.hosts.part import NO_HOOKS, Hooks
from agglab.systems.gloo import tcp, watching
from agglab.systems.gloo.counts import HEADER_BYTES, OWN_COUNTERS, counted

BLANK = dict.fromkeys(tcp.PLACES, 0)
OPEN = tcp.Info(**{**BLANK, "state": tcp.ESTABLISHED})
CLOSED = tcp.Info(**{**BLANK, "state": 8})


def info(**values: int) -> tcp.Info:
    return tcp.Info(**{**BLANK, "state": tcp.ESTABLISHED, **values})


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection, from 127.0.0.2 to 127.0.0.3."""
    with socket.create_server(("127.0.0.3", 0)) as server:
        one = socket.create_connection(server.getsockname(), source_address=("127.0.0.2", 0))
        other, _ = server.accept()
        with one, other:
            yield one, other


def found(address: str, but_port: int = 1) -> list[tcp.Connection]:
    return list(tcp.connections([address], but_port))


def test_a_connection_is_found_by_its_peers_address(ends) -> None:
    (connection,) = found("127.0.0.3")
    assert connection.peer == ends[1].getsockname()
    assert not found("127.0.0.4")
    connection.break_off()


@pytest.mark.parametrize("end", [0, 1])
def test_one_at_the_stores_port_is_nobodys(ends, end: int) -> None:
    assert not found("127.0.0.3", but_port=ends[end].getsockname()[1])


def test_no_socket_is_found_twice(ends) -> None:
    assert [len(found("127.0.0.3")) for _ in range(3)] == [1, 1, 1]


def test_the_kernels_counts_are_read_where_they_are(ends) -> None:
    one, other = ends
    (connection,) = found("127.0.0.3")
    one.sendall(bytes(3000))
    other.recv(3000, socket.MSG_WAITALL)
    other.sendall(bytes(70))
    one.recv(70, socket.MSG_WAITALL)
    now = connection.info()
    assert (now.bytes_sent, now.bytes_received) == (3000, 70)
    assert now.established and not now.silent
    assert 0 < now.bytes_acked <= 3001
    assert now.segs_out >= 2 and now.segs_in >= 2 and now.snd_cwnd >= 2
    assert now.total_retrans == now.total_rto == now.dsack_dups == 0
    connection.break_off()


def test_an_older_kernel_has_fewer_counts() -> None:
    whole = bytes(range(256))
    assert tcp.read_info(whole[:216]).dsack_dups == 0
    assert tcp.read_info(whole).dsack_dups == int.from_bytes(whole[216:220], sys.byteorder)
    assert tcp.read_info(whole[:216]).bytes_sent > 0


def test_to_break_off_ends_it_for_all_who_hold_it(ends) -> None:
    one, other = ends
    (connection,) = found("127.0.0.3")
    one.sendall(bytes(10))
    connection.break_off()
    connection.break_off()
    assert len(other.recv(100)) + len(other.recv(100)) == 10
    assert one.recv(1) == b""
    assert connection.info().bytes_sent == 10


def test_the_other_end_is_seen_to_close(ends) -> None:
    (connection,) = found("127.0.0.3")
    ends[1].shutdown(socket.SHUT_RDWR)
    assert not connection.info().established
    connection.break_off()


def test_the_congestion_control_is_the_one_asked_for(ends) -> None:
    (connection,) = found("127.0.0.3")
    connection.control_congestion_by("reno")
    name = ends[0].getsockopt(socket.IPPROTO_TCP, tcp.TCP_CONGESTION, 16)
    assert name.rstrip(b"\0") == b"reno"
    with pytest.raises(OSError):
        connection.control_congestion_by("nonsense")
    connection.break_off()


def test_probing_asks_each_second_and_gives_nothing_up(ends) -> None:
    (connection,) = found("127.0.0.3")
    connection.probe()
    assert ends[0].getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert ends[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 1
    assert ends[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 127
    connection.break_off()


def test_who_answers_nothing_is_silent() -> None:
    assert info(retransmits=1).silent and info(probes=1).silent
    assert not info(unacked=4).silent, "what was just sent is not answered yet"


def test_counts_are_those_of_all_connections() -> None:
    one = info(segs_out=5, segs_in=4, bytes_sent=1000, bytes_received=90, total_retrans=2)
    other = info(segs_out=1, dsack_dups=3, total_rto=1)
    all_counts = counted([one, other])
    assert all_counts["sent"] == 6 and all_counts["received"] == 4
    assert all_counts["bytes_sent"] == 1000 + 6 * HEADER_BYTES
    assert all_counts["bytes_received"] == 90 + 4 * HEADER_BYTES
    assert (all_counts["retransmitted"], all_counts["timeouts"]) == (2, 1)
    assert all_counts["repeated_in_vain"] == 3


# A worker's rounds, by a group whose connections are made up.


class MadeUp:
    """A connection that says what the test wants."""

    def __init__(self, said: tcp.Info) -> None:
        self.said, self.probed = said, 0

    def info(self) -> tcp.Info:
        return self.said

    def probe(self) -> None:
        self.probed += 1


def watched(connections: dict[int, MadeUp], rank: int = 0, workers: int = 3) -> watching.Watched:
    return watching.Watched(SimpleNamespace(connections=connections), workers, rank, 100)


def test_progress_is_what_came_in_full_segments() -> None:
    one, other = MadeUp(info(bytes_received=5000)), MadeUp(OPEN)
    seen = watched({1: one, 2: other})
    seen.begin(1500)  # of which 2/3 come twice: 2000 bytes
    assert (seen.chunks, seen.chunks_done) == (20, 0)
    one.said = info(bytes_received=6250)
    assert seen.look() == 6250
    assert seen.chunks_done == 12, "what came before the round does not count"
    one.said = info(bytes_received=9000)
    seen.look()
    assert seen.chunks_done == 19, "Gloo alone says that all is there"
    seen.finish()
    assert seen.chunks_done == 20
    assert seen.waiting(9) == []


def test_a_worker_alone_waits_for_nobody() -> None:
    seen = watched({}, workers=1)
    seen.begin(1500)
    assert seen.chunks == 1
    assert seen.waiting(9) == []


def test_the_window_is_sampled_where_something_is_on_its_way() -> None:
    seen = watched({1: MadeUp(info(unacked=3, snd_cwnd=10)), 2: MadeUp(info(snd_cwnd=99))})
    seen.begin(1500)
    seen.look()
    seen.look()
    assert seen.counters["window_samples"] == 2
    assert seen.counters["window_segments"] == 20
    assert set(seen.counters) >= set(OWN_COUNTERS)


@pytest.mark.parametrize(
    ("one", "other", "awaited"),
    [
        (OPEN, OPEN, [[0, 1, 0]]),
        (OPEN, info(retransmits=2), [[0, 2, 1]]),
        (info(probes=1), info(retransmits=2), [[0, 1, 1], [0, 2, 1]]),
        (CLOSED, OPEN, [[0, 1, 1]]),
        (CLOSED, info(probes=1), [[0, 2, 1]]),
    ],
)
def test_who_is_waited_for(one: tcp.Info, other: tcp.Info, awaited: list[list[int]]) -> None:
    """Silence is the cause, and that others break off its consequence."""
    seen = watched({1: MadeUp(one), 2: MadeUp(other)})
    seen.begin(1500)
    assert seen.waiting(9) == awaited
    assert seen.waiting(1) == awaited[:1]


def test_all_with_whom_there_is_no_connection_are_waited_for() -> None:
    seen = watched({}, rank=1)
    seen.begin(1500)
    assert seen.waiting(9) == [[0, 0, 1], [0, 2, 1]]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(ns=0)
    monkeypatch.setattr(watching.time, "monotonic_ns", lambda: now.ns)
    return now


def test_a_round_is_over_when_nothing_moves_for_the_time_to_give_up(clock) -> None:
    watch = watching.Watch(NO_HOOKS, 4_000_000_000)
    for clock.ns, moved, over in [
        (1_000_000_000, 10, False),
        (4_900_000_000, 10, False),
        (5_000_000_000, 10, True),
        (5_100_000_000, 11, False),
    ]:
        watch.turn(moved)
        assert watch.is_over() is over


def test_a_stall_is_told_once(clock) -> None:
    watch, told = watching.Watch(NO_HOOKS, 4_000_000_000), []
    for clock.ns, moved in [(4, 0), (6, 0), (9, 0), (10, 1), (14, 1), (16, 1), (30, 1)]:
        clock.ns *= 100_000_000
        watch.turn(moved)
        told.append(watch.stalls_first())
    assert told == [False, True, False, False, False, True, False]


def test_hooks_are_called_within_a_round(clock) -> None:
    batches, reports = [], []
    watch = watching.Watch(Hooks(reports.append, lambda: batches.append(clock.ns)), 10_000_000_000)
    for clock.ns in range(0, 500_000_001, 20_000_000):
        watch.turn(0)
    assert len(batches) == 26
    assert reports == [100_000_000, 300_000_000, 500_000_000]


def test_what_gloo_says_is_said_without_its_source() -> None:
    said = "[/w/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:4. This is so."
    assert watching.one_sentence(RuntimeError(said)) == "Connection closed by peer [10.0.0.2]:4"
    assert watching.one_sentence(RuntimeError("no place\nmore")) == "no place"


def test_nobody_imports_pytorch_but_a_worker_that_starts() -> None:
    code = (
        "import sys, agglab.hosts.agent, agglab.systems.gloo.endpoint\n"
        "from agglab.testbed import systems\n"
        "[systems.find(name) for name in systems.built_in()]\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
