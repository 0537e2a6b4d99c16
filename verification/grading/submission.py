"""Reads what a student has handed in, and refuses what no honest submission needs: links, huge
files, and includes of files other than the language's own."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from agglab.testbed.base.problems import quote
from agglab.testbed.schema import document
from agglab.testbed.schema.document import Items, Node, Scalar

BYTES_MAX = 256 << 10
PATH_KEYS = ("program", "entries", "worker", "script", "file", "compiler", "target")
"""The keys of a scenario whose values name files, code or programs."""
_BLANK = r"(?:[ \t\f\v]|/\*.*?\*/)*"
_DIRECTIVE = re.compile(
    rf"(?:^|\*/){_BLANK}(?:#|%:){_BLANK}(?P<verb>include_next|include|import|embed|line|\d+)\b"
    rf"{_BLANK}(?P<operand>[^\n]*)",
    re.MULTILINE | re.DOTALL,
)
_ALLOWED = re.compile(r'<(core|v1model)\.p4>|"(core|v1model)\.p4"')
_CONTINUED = re.compile(r"\\[ \t\f\v]*\n")
_TRIGRAPHS = {"??=": "#", "??/": "\\"}


class Refused(Exception):
    """Raised for a submission that is not graded. The message is a sentence for the student."""


def read(path: Path) -> bytes:
    """Returns the content of a submission. Raises Refused for a link, for what is no file, and for
    a file of more than BYTES_MAX bytes."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused(f"{path.name} is not a file.")
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        why = "is a link" if path.is_symlink() else error.strerror
        raise Refused(f"{path.name} cannot be read: {why}. Hand in the file itself.") from None
    if len(content) > BYTES_MAX:
        raise Refused(f"{path.name} has more than {BYTES_MAX >> 10} KiB.")
    return content


def check(content: bytes, kind: str) -> None:
    """Raises Refused for content that reaches for other files. kind: the suffix of its file."""
    if kind == ".p4":
        _check_includes(content.decode("utf-8", "replace"))
    if kind == ".yaml":
        _check_paths(document.parse(content.decode("utf-8", "replace"), "submission"))


def _check_includes(text: str) -> None:
    """Raises Refused for every include but those of the language's own files, and for directives by
    which the compiler takes its lines for those of another file. It reads trigraphs
    and continued lines as the C preprocessor does. It does not ask what is a comment or a text, so
    that no trick with quotes hides an include; an include within a comment is refused, too."""
    for trigraph, character in _TRIGRAPHS.items():
        text = text.replace(trigraph, character)
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTINUED.sub("", text)
    for directive in _DIRECTIVE.finditer(text):
        if directive["verb"] == "line" or directive["verb"].isdecimal():
            raise Refused(
                f"The program has the directive {quote(directive[0].strip())}, with which errors "
                "show lines of other files. A submission needs none."
            )
        if directive["verb"] != "include" or not _ALLOWED.match(directive["operand"]):
            raise Refused(
                f"The program includes {quote(directive['operand'].strip())}. A submission is one "
                "file, which includes only <core.p4> and <v1model.p4>."
            )


def _check_paths(node: Node) -> None:
    """Raises Refused if a scenario names a file or code."""
    if isinstance(node, Scalar):
        if "/" in node.text or ".py" in node.text:
            raise Refused(f"The scenario names the file {quote(node.text)}. It may name none.")
        return
    if isinstance(node, Items):
        for item in node.items:
            _check_paths(item)
        return
    for name, value in node.entries:
        last = name.text.rpartition(".")[2]
        if last in PATH_KEYS:
            raise Refused(f"The scenario sets {quote(name.text)}. The exercise does so itself.")
        _check_paths(value)
