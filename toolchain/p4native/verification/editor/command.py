"""The command `editor`: types random edits into a long program, asks the language server after each
of them, and prints how long the answers took."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from p4native.common.exit_codes import FAILED, PASSED
from p4native.verification.editor.client import Client, ServerEndedError
from p4native.verification.editor.edits import Editor
from p4native.verification.editor.program import program_text

QUESTIONS = ("hover", "definition", "completion")
MISTAKE = "an_undeclared_name = 1;"


@dataclass
class Measured:
    """Times in seconds. answers: of each question, how long every answer took. shown_s: how long
    after an edit its message was there, while nothing else happened."""

    answers: dict[str, list[float]] = field(default_factory=dict)
    shown_s: list[float] = field(default_factory=list)


def main(words: Sequence[str], prog: str = "python -m p4native.verification editor") -> int:
    """Runs the command and returns its exit code."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("--lines", type=int, default=2000, help="of the program (default: 2000)")
    parser.add_argument("--edits", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument(
        "--pause-ms", type=float, default=10, help="between two edits, on average (default: 10)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the edits (default: 1)")
    options = parser.parse_args(words)
    text = program_text(options.lines)
    print(f"{text.count(chr(10))} lines, {options.edits} edits, seed {options.seed}")
    try:
        measured = typed(text, options.edits, options.seed, options.pause_ms / 1000)
    except ServerEndedError as error:
        print(f"editor: FAILED: {error}", file=sys.stderr)
        return FAILED
    print(table(measured))
    return PASSED


def typed(text: str, edits: int, seed: int, pause_s: float = 0) -> Measured:
    """Types `edits` random edits into a program, and asks after each. Then makes a mistake in the
    first text, and takes it back, until its message appears and disappears.

    Raises ServerEndedError if the server ended or does not answer.
    """
    measured = Measured({question: [] for question in QUESTIONS})
    with tempfile.TemporaryDirectory(prefix="p4native-editor-") as folder, Client() as client:
        uri = (Path(folder) / "prog.p4").as_uri()
        document = {"uri": uri}
        client.ask("initialize", {})
        client.tell("textDocument/didOpen", {"textDocument": {**document, "text": text}})
        editor = Editor(text, seed)
        for _ in range(edits):
            time.sleep(pause_s * editor.random.uniform(0, 2))
            _change(client, document, editor.change())
            question = editor.random.choice(QUESTIONS)
            place = {"textDocument": document, "position": editor.somewhere()}
            begin_s = time.monotonic()
            answer = client.ask(f"textDocument/{question}", place)
            measured.answers[question].append(time.monotonic() - begin_s)
            if "result" not in answer:
                raise ServerEndedError(f"{question} was answered by {answer['error']}")
        for _ in range(5):
            measured.shown_s.append(_show_mistake(client, document, text))
        if client.close() != 0:
            raise ServerEndedError("the server did not end with 0")
    return measured


def _change(client: Client, document: dict[str, Any], change: dict[str, Any]) -> None:
    client.tell("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})


def _show_mistake(client: Client, document: dict[str, Any], text: str) -> float:
    """Returns how long the message about a mistake took, after one without mistake was shown."""
    _change(client, document, {"text": text})
    client.until_shown(document["uri"], lambda shown: not shown)
    editor = Editor(text, 0)
    at = text.rindex("apply {", 0, text.rindex("sums.write")) + len("apply {")
    begin_s = time.monotonic()
    _change(client, document, editor.replaced(at, at, MISTAKE))
    line = editor.place(at)["line"]
    client.until_shown(
        document["uri"], lambda shown: [d["range"]["start"]["line"] for d in shown] == [line]
    )
    return time.monotonic() - begin_s


def table(measured: Measured) -> str:
    """Returns the times in milliseconds, as a table."""
    rows = {f"answer to {name}": times for name, times in measured.answers.items()}
    rows["message about an edit"] = measured.shown_s
    lines = [f"{'ms':<24}{'count':>8}{'median':>9}{'99 %':>9}{'largest':>9}"]
    for name, times in rows.items():
        if times:
            ordered = sorted(times)
            chosen = [ordered[int(part * (len(ordered) - 1))] for part in (0.5, 0.99, 1)]
            cells = "".join(f"{1000 * each:>9.1f}" for each in chosen)
            lines.append(f"{name:<24}{len(times):>8}{cells}")
    return "\n".join(lines)
