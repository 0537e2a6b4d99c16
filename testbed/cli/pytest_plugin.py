r"""The pytest fixture `scenario` runs a scenario from a user's own test and returns its result.

    def test_my_program(scenario):
        result = scenario("switch: {program: mine.p4}\nexpect: {exact: true}")
        assert result.metrics["totals"]["retransmitted"] == 0

pytest finds the fixture as soon as Agglab is installed (entry point `pytest11`).
docs/testing-your-program.md has more.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agglab.testbed.base.exit_codes import FAILED, LACKING, PASSED, UNDECIDED

TIMEOUT_S = 600.0
NAME_MAX = 50
INTERRUPT_S = 15.0
"""How long a run may take to clean up after it was asked to stop, in seconds."""


@dataclass(frozen=True)
class Result:
    """The results of a run. ok: whether it passed. summary: the text that was printed
    for the user."""

    ok: bool
    metrics: dict[str, Any]
    folder: Path
    summary: str

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Returns the events of this kind, in order."""
        lines = (self.folder / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def contender(self, name: str) -> Result:
        """Returns the result of one contender's run in a comparison."""
        metrics = self.metrics["contenders"][name]
        return Result(metrics["ok"], metrics, self.folder / name, self.summary)


class Scenarios:
    """The value of the fixture: a function that runs a scenario."""

    def __init__(self, item: pytest.Item, scratch: Path, results: Path) -> None:
        self._item = item
        self._scratch = scratch
        self._results = results
        self._runs = 0

    def __call__(
        self,
        scenario: str | os.PathLike[str] | Mapping[str, Any],
        settings: Mapping[str, object] | None = None,
        *,
        check: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> Result:
        """Runs a scenario in a separate process and returns its result.

        scenario: a name from `agglab list`, a path (relative to the test's folder or to pytest's
        root, like the paths in it), YAML text, or a mapping. settings: additional keys, such as
        {"links.loss": "1%"}. check: whether the test fails unless the run passed. The test is
        skipped if the machine lacks something (with --agglab-require it fails), and fails if the
        scenario is invalid.
        """
        words = [f"{key}={_value(value)}" for key, value in (settings or {}).items()]
        command = [sys.executable, "-m", "agglab.testbed", "run", *self._file(scenario)]
        command += [word for setting in words for word in ("--set", setting)]
        code, out, err = self._run([*command, "--results", str(self._results)], timeout_s)
        said = (out + err).strip()
        if code == LACKING:
            self._lacking(err.strip())
        folder = _folder(out, self._results)
        judged = code in (PASSED, FAILED, UNDECIDED)
        if folder is None or not judged or (check and code != PASSED):
            reason = _reason(folder, err)
            rest = "" if said == reason else f"\n{said}"
            pytest.fail(f"{reason} (exit code {code}){rest}", pytrace=False)
        self._item.add_report_section("call", "agglab", said)
        metrics = json.loads((folder / "metrics.json").read_text())
        return Result(code == PASSED, metrics, folder, out)

    def _lacking(self, what: str) -> NoReturn:
        if self._item.config.getoption("--agglab-require"):
            pytest.fail(f"{what} (--agglab-require)", pytrace=False)
        pytest.skip(what)

    def _file(self, scenario: str | os.PathLike[str] | Mapping[str, Any]) -> list[str]:
        """Returns the arguments of a command line that name the scenario."""
        if isinstance(scenario, Mapping):
            return self._write(json.dumps(scenario, default=str))  # JSON is YAML
        text = os.fspath(scenario)
        if ": " in text or "\n" in text:
            return self._write(text)
        for folder in (self._item.path.parent, self._item.config.rootpath):
            if (folder / text).is_file():
                return [str(folder / text)]
        return [text]

    def _write(self, text: str) -> list[str]:
        """Writes the text to a file that has the test's name, and returns the arguments of a
        command line that name it. Relative paths in the text start from the test's folder."""
        self._runs += 1
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", self._item.name)[:NAME_MAX].strip("-_") or "test"
        path = self._scratch / f"{name}-{self._runs}.yaml"
        path.write_text(text)
        return [str(path), "--folder", str(self._item.path.parent)]

    def _run(self, command: list[str], timeout_s: float) -> tuple[int, str, str]:
        """Runs the command in pytest's root folder, and returns the exit code and both outputs.
        Agglab looks there for paths that it does not find beside the scenario or test."""
        process = subprocess.Popen(
            command,
            cwd=self._item.config.rootpath,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            said = _stopped(process)
        else:
            return process.returncode, out, err
        pytest.fail(f"the scenario took more than {timeout_s:g} s\n{said}", pytrace=False)


@pytest.fixture
def scenario(request: pytest.FixtureRequest, tmp_path: Path) -> Scenarios:
    """Returns a function that runs a scenario (name, path, YAML text or mapping) and returns a
    Result."""
    kept = request.config.getoption("--agglab-results")
    results = Path(kept).resolve() if kept else tmp_path / "results"
    return Scenarios(request.node, tmp_path, results)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("agglab")
    group.addoption(
        "--agglab-results",
        metavar="DIR",
        help="the folder for the results of the `scenario` fixture (default: the test's own "
        "folder)",
    )
    group.addoption(
        "--agglab-require",
        action="store_true",
        help="fail, instead of skipping, a test whose `scenario` fixture needs something that "
        "the machine lacks",
    )


def _stopped(process: subprocess.Popen[str]) -> str:
    """Sends the process a signal to end, gives it time to clean up, and returns its output."""
    process.terminate()
    try:
        out, err = process.communicate(timeout=INTERRUPT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return out + err


def _value(value: object) -> str:
    """Returns the value as it is written in YAML, of which JSON is a part."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _reason(folder: Path | None, err: str) -> str:
    """Returns the reason of a test's failure in one line."""
    if folder is not None:
        reason = str(json.loads((folder / "metrics.json").read_text()).get("reason") or "")
    else:
        reason = next(iter(err.splitlines()), "")
    return reason or "the scenario failed"


def _folder(out: str, results: Path) -> Path | None:
    """Returns the result folder whose path is at the end of the printed summary, if there is
    one."""
    for line in reversed(out.splitlines()):
        for word in reversed(line.split()):
            path = Path(word)
            if path.is_relative_to(results) and (path / "metrics.json").is_file():
                return path
    return None
