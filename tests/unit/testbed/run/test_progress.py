"""What a person sees while a run goes on: the bytes written to a terminal and to a file."""

import io
import os
import re
from pathlib import Path

import pytest

from agglab.testbed.experiment.scenario_run import run
from agglab.testbed.run import progress as progress_module
from agglab.testbed.run.progress import Progress
from agglab.testbed.scenario import load

FRAME_BITS = 8 * 1514
CHUNKS = 2000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _a_terminal_with_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_without_a_cursor_gets_plain_lines(monkeypatch, kind: str) -> None:
    monkeypatch.setenv("TERM", kind)
    out = Terminal()
    progress = drawn(out, workers=2, rounds=1)
    progress.begin_round(1, 0, 0)
    progress.event(progressed(0, 500, 1.0))
    progress.draw(10.0)
    progress.close()
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().startswith("round 0 of 1")


def progressed(rank: int, chunks: int, at_s: float, again: int = 0) -> dict:
    return {
        "event": "progress",
        "job": 1,
        "rank": rank,
        "chunks": chunks,
        "of": CHUNKS,
        "retransmitted": again,
        "t_ns": round(at_s * 1e9),
    }


def rounded(rank: int, seconds: float, again: int) -> dict:
    stats = {"retransmitted": again}
    end_ns = round(seconds * 1e9)
    times = {"start_ns": 0, "end_ns": end_ns}
    return {"event": "round", "job": 1, "rank": rank, **times, "stats": stats}


def drawn(out: io.StringIO, workers: int, rounds: int) -> Progress:
    """Of one job; rounds begin at 0 s."""
    progress = Progress(out, clock=lambda: 0.0)
    progress.add_job(1, "job1", workers, rounds, CHUNKS, FRAME_BITS)
    return progress


def screen(text: str, columns: int = 200) -> list[str]:
    """What a terminal shows after these bytes; only the sequences that Progress may use."""
    rows, at = [""], 0
    for part in re.findall(r"\x1b\[\d*[A-Z]|\n|[^\x1b\n]+", text):
        if part == "\n":
            at += 1
            rows += [""] * (at + 1 - len(rows))
        elif part == "\x1b[2K":
            rows[at] = ""
        elif part == "\x1b[J":
            del rows[at + 1 :]
            rows[at] = ""
        elif part.startswith("\x1b["):
            assert part[-1] == "A"
            at -= int(part[2:-1])
            assert at >= 0
        else:
            assert len(part) <= columns
            rows[at] = part + rows[at][len(part) :]
    return rows


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    size = os.terminal_size((200, 50))
    monkeypatch.setattr("shutil.get_terminal_size", lambda: size)


def test_a_terminal_shows_one_line_per_worker_in_place(wide: None) -> None:
    out = Terminal()
    progress = drawn(out, 2, 3)
    progress.begin_round(1, 0, 0)
    progress.event(progressed(0, 500, 1.0))
    progress.event(progressed(1, 1000, 1.0, again=7))
    progress.draw(1.0)
    progress.event(progressed(0, 1000, 2.0))
    progress.draw(2.0)
    first, second, rest = screen(out.getvalue())
    assert rest == ""
    assert first.startswith("round 0 of 3 worker 0: [##########..........] 1000/2000 chunks")
    assert "6.1 Mbit/s" in first  # 500 chunks a second of 1514 bytes
    assert "2.0 s left" in first
    assert "7 sent again" in second
    assert "1.0 s left" in second


def test_a_round_replaces_its_workers_by_one_line(wide: None) -> None:
    out = Terminal()
    progress = drawn(out, 2, 2)
    for number in (0, 1):
        progress.begin_round(1, number, 0)
        progress.event(progressed(0, 500, 1.0))
        progress.draw(1.0 + number)
        progress.event(rounded(0, 1.5, again=2))
        progress.event(rounded(1, 1.25, again=1))
        progress.end_round(1, 1.5)
    progress.close()
    lines = ["round 0 of 2: 1.5000 s, 3 sent again", "round 1 of 2: 1.5000 s, 3 sent again", ""]
    assert screen(out.getvalue()) == lines


def test_a_round_begins_with_nothing_done(wide: None) -> None:
    out = Terminal()
    progress = drawn(out, 1, 2)
    progress.begin_round(1, 0, 0)
    progress.event(rounded(0, 1.5, again=2))
    progress.end_round(1, 1.5)
    progress.begin_round(1, 1, 0)
    progress.draw(2.0)
    row = screen(out.getvalue())[1]
    assert row.startswith("round 1 of 2 worker 0: [....................] 0/2000 chunks")
    assert row.endswith("0 sent again  waiting")


def test_it_is_not_drawn_too_often(wide: None) -> None:
    out = Terminal()
    progress = drawn(out, 1, 1)
    progress.begin_round(1, 0, 0)
    for i in range(100):
        progress.draw(1.0 + i / 1000)
    assert out.getvalue().count("\n") == 1


def test_a_narrow_and_low_terminal_is_not_overflowed(monkeypatch: pytest.MonkeyPatch) -> None:
    size = os.terminal_size((40, 6))
    monkeypatch.setattr("shutil.get_terminal_size", lambda: size)
    out = Terminal()
    progress = drawn(out, 64, 1)
    progress.begin_round(1, 0, 0)
    progress.draw(1.0)
    progress.draw(2.0)
    rows = screen(out.getvalue(), columns=39)
    assert len(rows) == 5
    assert rows[3] == "... and 61 more workers"


def test_a_file_gets_plain_lines_at_a_slow_pace() -> None:
    out = io.StringIO()
    progress = drawn(out, 2, 1)
    progress.begin_round(1, 0, 0)
    for tenth in range(400):
        progress.event(progressed(0, tenth, tenth / 10))
        progress.draw(tenth / 10)
    progress.end_round(1, 40.0)
    progress.close()
    assert "\x1b" not in out.getvalue()
    lines = out.getvalue().splitlines()
    assert len(lines) == 2 * 3 + 1  # after 5, 15 and 35 seconds
    assert lines[-1] == "round 0 of 1: 40.0000 s, 0 sent again"


def test_nothing_moving_has_no_time_left() -> None:
    out = io.StringIO()
    progress = drawn(out, 1, 1)
    progress.begin_round(1, 0, 0)
    progress.draw(5.0)
    assert "0/2000 chunks  0 bit/s  0 sent again  waiting" in out.getvalue()


def test_several_jobs_are_told_apart_and_only_those_in_a_round_are_shown() -> None:
    out = io.StringIO()
    progress = Progress(out, clock=lambda: 0.0)
    for number, name in ((1, "big"), (2, "small"), (3, "late")):
        progress.add_job(number, name, 1, 4, CHUNKS, FRAME_BITS)
    progress.begin_round(1, 0, 0)
    progress.begin_round(2, 2, 0)
    progress.draw(5.0)
    progress.end_round(2, 0.25)
    progress.draw(15.0)
    assert [line[:28] for line in out.getvalue().splitlines()] == [
        "big round 0 of 4 worker 0: [",
        "small round 2 of 4 worker 0:",
        "small round 2 of 4: 0.2500 s",
        "big round 0 of 4 worker 0: [",
    ]


@pytest.mark.parametrize("columns", [200, 100, 80, 60, 40, 30])
def test_the_time_left_is_there_whatever_the_width(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    size = os.terminal_size((columns, 50))
    monkeypatch.setattr("shutil.get_terminal_size", lambda: size)
    out = Terminal()
    progress = Progress(out, clock=lambda: 0.0)
    progress.add_job(1, "job1", 4, 3, 2740, FRAME_BITS)
    progress.begin_round(1, 0, 0)
    for rank in range(4):
        progress.event({**progressed(rank, 1370 + rank, 1.0, again=27), "of": 2740})
    progress.draw(1.0)
    rows = screen(out.getvalue(), columns - 1)[:4]
    assert all(row.endswith(" s left") for row in rows), rows
    assert ["2740" in row for row in rows] == [True] * 4
    if columns >= 80:
        assert all("[####" in row and "27 sent again" in row for row in rows)


def test_every_worker_is_seen_to_move_in_virtual_time(
    wide: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress_module, "REDRAW_S", 0.0)
    file = tmp_path / "s.yaml"
    file.write_text(
        "backend: virtual\nlinks: {rate: 1mbit}\nswitch: {lanes: 8, slots: 8}\n"
        "workload: {elements: 4000, rounds: 1}"
    )
    out = Terminal()
    assert run(load(file), tmp_path / "results", (), out) == 0
    for rank in range(4):
        shown = re.findall(rf"worker {rank}: .* (\d+)/500 chunks", out.getvalue())
        assert any(0 < int(chunks) < 500 for chunks in shown), (rank, shown)
