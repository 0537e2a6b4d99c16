"""What a machine carries: searched, kept, and told by `check`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agglab.testbed.cli import main
from agglab.testbed.cli.calibration import capacity, command
from agglab.testbed.cli.calibration.capacity import Row, carried_bps
from agglab.testbed.cli.calibration.search import HIGHEST_BPS, LOWEST_BPS, NEAR, highest

MBIT = 1_000_000
ROWS = [Row(2, 1500, 400 * MBIT), Row(8, 1500, 50 * MBIT)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("P4NATIVE_CACHE", str(tmp_path))
    return tmp_path


@given(st.integers(LOWEST_BPS // 2, 2 * HIGHEST_BPS), st.integers(1, 2 * HIGHEST_BPS))
def test_the_limit_is_found_to_10_percent_in_few_runs(limit_bps: int, begin_bps: int) -> None:
    tried: list[int] = []

    def carries(rate_bps: int) -> bool:
        tried.append(rate_bps)
        return rate_bps <= limit_bps

    found = highest(carries, begin_bps)
    if limit_bps < LOWEST_BPS:
        assert found is None
    else:
        assert found is not None
        assert found <= limit_bps
        assert found == HIGHEST_BPS or limit_bps < found * NEAR * 1.001
    assert len(tried) <= 16


def test_rates_between_and_beyond_the_rows() -> None:
    """All workers together: 800 Mbit/s of 2, 400 of 8."""
    assert carried_bps(ROWS, 2, 1500) == pytest.approx(400 * MBIT)
    assert carried_bps(ROWS, 8, 1500) == pytest.approx(50 * MBIT)
    assert carried_bps(ROWS, 4, 1500) == pytest.approx((800 * 400) ** 0.5 * MBIT / 4)
    assert carried_bps(ROWS, 1, 1500) == pytest.approx(800 * MBIT)
    assert carried_bps(ROWS, 16, 1500) == pytest.approx(25 * MBIT)
    assert carried_bps(ROWS, 8, 750) == pytest.approx(25 * MBIT)
    assert carried_bps([], 8, 1500) is None


def checked(capsys: pytest.CaptureFixture[str], *settings: str) -> str:
    words = [word for setting in settings for word in ("--set", setting)]
    assert main.main(["check", "quickstart", *words]) == 0
    return capsys.readouterr().out


def test_check_says_what_a_scenario_asks_too_much(capsys: pytest.CaptureFixture[str]) -> None:
    wide = ("topology.workers=8", "links.rate=155mbit")
    assert "can carry" not in checked(capsys, *wide)
    capacity.keep(ROWS)
    assert (
        "this scenario asks for 3.1 times what this machine can carry (155mbit for each of 8 "
        "workers; 50mbit was measured), so expect the verdict cpu-bound; "
        "use links.rate 50mbit or backend: virtual"
    ) in checked(capsys, *wide)
    assert "can carry" not in checked(capsys, "topology.workers=8", "links.rate=50mbit")
    assert "can carry" not in checked(capsys, *wide, "backend=virtual")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"rows": 3}',
        '{"rows": [{"workers": 0, "packet_bytes": 1, "rate_bps": 1}]}',
        json.dumps({"machine": {"processors": 9999}, "rows": [vars(ROWS[0])]}),
    ],
)
def test_a_table_that_is_damaged_or_another_machines_says_nothing(cache: Path, text: str) -> None:
    (cache / capacity.NAME).write_text(text)
    assert capacity.kept() == []


def limited(limit_bps: int) -> Callable[[int, int, int], bool]:
    return lambda workers, packet_bytes, rate_bps: workers * rate_bps <= limit_bps * packet_bytes


def test_calibrate_keeps_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--workers", "2,4", "--packet-bytes", "1500"]
    assert command.main(words, limited(500_000)) == 0
    rows = capacity.kept()
    assert [(row.workers, row.packet_bytes) for row in rows] == [(2, 1500), (4, 1500)]
    assert 375 * MBIT / NEAR < rows[0].rate_bps <= 375 * MBIT
    assert "4 workers, packets of 1500 bytes: 1" in capsys.readouterr().out


def test_what_was_found_before_an_interrupt_is_kept() -> None:
    def probe(workers: int, packet_bytes: int, rate_bps: int) -> bool:
        if workers == 4:
            raise KeyboardInterrupt
        return rate_bps <= 20 * MBIT

    assert command.main(["--workers", "2,4", "--packet-bytes", "576"], probe) == 130
    assert [row.workers for row in capacity.kept()] == [2]


def test_a_machine_that_carries_nothing_keeps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--workers", "2", "--packet-bytes", "576"], lambda *_: False) == 1
    assert capacity.kept() == []
    assert "repeat the calibration on a quieter machine" in capsys.readouterr().out


def test_a_machine_that_lacks_something_says_what(capsys: pytest.CaptureFixture[str]) -> None:
    def probe(workers: int, packet_bytes: int, rate_bps: int) -> bool:
        raise command.Unmeasured(3, "this machine lacks something")

    assert command.main(["--workers", "2"], probe) == 3
    assert "this machine lacks something" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--workers", "0"], ["--packet-bytes", "big"], ["x"]])
def test_wrong_words(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
