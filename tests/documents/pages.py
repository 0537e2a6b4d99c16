"""Finds the command lines that README.md, CONTRIBUTING.md, docs/, systems/ and toolchain/ show
to their readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLCHAIN = ROOT / "toolchain"
TOP = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", TOOLCHAIN / "README.md")
PAGES = (
    *TOP,
    *(
        page
        for folder in (ROOT / "docs", ROOT / "systems", TOOLCHAIN / "docs")
        for page in sorted(folder.rglob("*.md"))
    ),
)
PROGRAMS = re.compile(
    r"""
    agglab|p4native-c|p4native-lsp|p4native-stf|p4native-switch|apt|apt-get|bash|bridge|cat|cd|chmod|chown|
    cmake|cp|curl|dask|debootstrap|docker|dpkg|echo|ethtool|export|g\+\+|gcc|git|
    grep|gzip|ip|iperf|kill|ln|ls|make|mkdir|mn|mnexec|modprobe|mount|mv|nc|npm|
    openssl|p4c|p4c-bm2-ss|p4run|pgrep|pip|pip3|pkill|podman|ps|pytest|python|
    python3|qemu-system-x86_64|rm|rsync|ruff|scp|sed|sh|simple_switch|
    simple_switch_CLI|simple_switch_grpc|source|ssh|su|sudo|sysctl|systemctl|tail|tar|
    tc|tcpdump|time|timeout|torchrun|touch|tshark|unshare|vagrant|virsh|wget|zip
    """,
    re.VERBOSE,
)
"""Programs that a command line may start with; so may any path of a program (`./x`, `.venv/x`)."""
PATH = re.compile(r"(\./|\.venv/|\.\./|[A-Z]+/|[\w./-]*/bin/)\S+|[\w./-]+\.sh")
SETTING = re.compile(r"[A-Z_]+=\S*$")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELL = ("", "sh", "bash", "console")
COMMENT = re.compile(r"\s+# .*$")


@dataclass(frozen=True)
class Shown:
    """A command line of a page: its text without comments, and where it stands."""

    page: str
    line: int
    text: str

    @property
    def home(self) -> Path:
        """The folder from which the page names files."""
        return TOOLCHAIN if self.page.startswith("toolchain/") else ROOT

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def shown() -> list[Shown]:
    """Returns every command line of every page, in order."""
    return [each for page in PAGES for each in commands(page.read_text(), name_of(page))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands(text: str, page: str) -> Iterator[Shown]:
    """Yields the command lines of one page: of its blocks and indented lines, and between
    backquotes in sentences and tables."""
    for block in FENCE.finditer(text):
        if block[1] in SHELL:
            yield from _of_block(block[2], page, _line(text, block.start()) + 1, block[1] != "")
    rest = FENCE.sub(lambda block: re.sub(r"[^\n]", "", block[0]), text)
    for span in re.finditer(r"`([^`]+)`|^ {4}(\S[^\n]*)$", rest, re.MULTILINE):
        words = COMMENT.sub("", " ".join((span[1] or span[2]).split()))
        if " " in words and is_command(words):
            yield Shown(page, _line(rest, span.start()), words)


def _of_block(block: str, page: str, first: int, is_shell: bool) -> Iterator[Shown]:
    """Yields the command lines of a block. In a block marked as shell every line is a command; a
    loop and a line that ends in a backslash go on in the next lines."""
    kept, begun = "", first
    for number, line in enumerate(block.splitlines(), first):
        begun = begun if kept else number
        kept += COMMENT.sub("", line).strip()
        if kept.endswith("\\"):
            kept = kept[:-1]
        elif kept.startswith("for ") and line.strip() != "done":
            kept += " " if kept.endswith(" do") else "; "
        else:
            if kept and (is_shell or is_command(kept)):
                yield Shown(page, begun, " ".join(kept.split()))
            kept = ""


def is_command(text: str) -> bool:
    """Returns whether the first word, after settings of variables, names a program."""
    words = [word for word in text.split() if not SETTING.match(word)]
    return bool(words) and any(known.fullmatch(words[0]) for known in (PROGRAMS, PATH))


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
