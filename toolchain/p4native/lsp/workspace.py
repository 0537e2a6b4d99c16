"""The open files, what is known about their programs, and the answers to an editor's questions.
Knows neither the protocol nor threads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from p4native.compiler import ast
from p4native.compiler.diagnostics import Diagnostic
from p4native.compiler.preprocess import Options
from p4native.compiler.source import NOWHERE, Position
from p4native.lsp.analysis import Analysis
from p4native.lsp.completion import Completion, Spot, completions
from p4native.lsp.programs import program_of
from p4native.lsp.symbols import Symbol, details, shown
from p4native.lsp.text import Place, Span, Text, units

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_INCLUDED = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
_COMMENT = re.compile(r"^\s*//+\s?(.*)$")
MAX_COMMENT_LINES = 12


class Message(NamedTuple):
    """A diagnostic at the place where its text is now."""

    span: Span
    diagnostic: Diagnostic


class Hover(NamedTuple):
    """What is known of a name. code: its declaration in P4. text: sentences about it."""

    span: Span
    code: str
    text: str


class Target(NamedTuple):
    """Where something is declared."""

    path: str
    span: Span


class Workspace:
    """Files are named by their absolute path without symbolic links."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.texts: dict[str, Text] = {}
        self.programs: dict[str, str] = {}
        """Of each open file, the file of the program that it belongs to."""
        self.latest: dict[str, Analysis] = {}
        self.understood: dict[str, Analysis] = {}
        """Of each program, the last analysis, and the last one without errors of syntax."""

    # ---- open files

    def open(self, path: str, content: str) -> str:
        """Enters an open file, and returns its program, which has to be analysed anew."""
        self.texts[path] = Text(content)
        contents = {name: text.content for name, text in self.texts.items()}
        self.programs[path] = program_of(path, contents, self.options.includes)
        return self.programs[path]

    def edit(self, path: str, span: Span | None, replacement: str) -> str | None:
        """Replaces a span of an open file, or the whole of it. Returns its program, or None if the
        file is not open."""
        if path not in self.texts:
            return None
        before = self.texts[path]
        self.texts[path] = Text(replacement) if span is None else before.edited(span, replacement)
        return self.programs[path]

    def close(self, path: str) -> None:
        self.texts.pop(path, None)
        self.programs.pop(path, None)
        for program in {*self.latest, *self.understood} - {*self.programs.values()}:
            self.latest.pop(program, None)
            self.understood.pop(program, None)

    def programs_with(self, path: str) -> set[str]:
        """Returns the programs of open files that a file belongs to."""
        using = {program for program, known in self.latest.items() if path in known.files}
        return (using | {self.programs.get(path, path)}) & {*self.programs.values()}

    def enter(self, analysis: Analysis) -> None:
        """Takes over an analysis, unless no file of the program is open any more."""
        if analysis.path not in self.programs.values():
            return
        self.latest[analysis.path] = analysis
        if analysis.understood:
            self.understood[analysis.path] = analysis

    # ---- diagnostics

    def messages(self) -> dict[str, list[Message]]:
        """Returns the messages of each file about which there are any, and an empty list for other
        open files."""
        messages: dict[str, list[Message]] = {path: [] for path in self.texts}
        for program, analysis in self.latest.items():
            for diagnostic in analysis.diagnostics:
                place = diagnostic.position
                path = program if place.line == NOWHERE.line else place.file
                message = Message(self._current(analysis, path, place), diagnostic)
                if message not in messages.setdefault(path, []):
                    messages[path].append(message)
        return messages

    def _current(self, analysis: Analysis, path: str, position: Position) -> Span:
        """Returns where a place that was analysed is now."""
        before = analysis.text_of(path)
        line = max(0, position.line - 1)
        first = Place(line, units(before.line(line)[: max(0, position.column - 1)]))
        end = position.column - 1 + max(1, position.length)
        last = Place(line, units(before.line(line)[: max(0, end)]))
        if path not in self.texts:
            return Span(first, last)
        now = self.texts[path].plain
        return Span(before.followed(first, now), before.followed(last, now))

    # ---- questions

    def hover(self, path: str, place: Place) -> Hover | None:
        """Returns what is known of the name at a place, or None."""
        word = self._word(path, place)
        if word is None:
            return None
        name, span = word
        for analysis in self._analyses(path):
            symbol = self._symbol(analysis, path, span.start, name)
            if symbol is not None and analysis.program is not None:
                comment = self._comment(analysis, symbol.declaration)
                sentences = " ".join(details(symbol, analysis.program))
                text = "\n\n".join(filter(None, (sentences, comment)))
                return Hover(span, shown(symbol, analysis.program), text)
            macro = self._macro(analysis, name)
            if macro is not None:
                return Hover(span, analysis.text_of(macro.file).line(macro.line - 1), "")
        return None

    def definition(self, path: str, place: Place) -> Target | None:
        """Returns where the name at a place is declared, or the file that a line includes."""
        included = self._included(path, place)
        if included is not None:
            return included
        word = self._word(path, place)
        for analysis in self._analyses(path) if word is not None else ():
            assert word is not None
            name, span = word
            symbol = self._symbol(analysis, path, span.start, name)
            declaration = symbol.declaration if symbol is not None else None
            position = declaration.position if declaration else self._macro(analysis, name)
            if position is not None:
                return Target(position.file, self._current(analysis, position.file, position))
        return None

    def complete(self, path: str, place: Place) -> list[Completion]:
        """Returns what can stand at a place. After errors, the last state of the program that could
        be parsed answers where the present one does not."""
        text = self.texts.get(path)
        if text is None:
            return []
        column = text.index(place) - text.starts[min(place.line, len(text.starts) - 1)]
        before = text.line(place.line)[:column]
        for analysis in self._analyses(path):
            if analysis.program is not None:
                line, column = self._place_then(analysis, path, place)
                offered = completions(analysis.program, Spot(path, line, column), before)
                if offered:
                    return offered
        return []

    def _analyses(self, path: str) -> Iterable[Analysis]:
        program = self.programs.get(path)
        known = (self.latest.get(program or ""), self.understood.get(program or ""))
        return dict.fromkeys(filter(None, known))

    def _word(self, path: str, place: Place) -> tuple[str, Span] | None:
        text = self.texts.get(path)
        if text is None:
            return None
        line = text.line(place.line)
        index = text.index(place) - text.index(Place(place.line, 0))
        for match in _IDENTIFIER.finditer(line):
            if match.start() <= index <= match.end():
                start, end = (units(line[:at]) for at in match.span())
                return match[0], Span(Place(place.line, start), Place(place.line, end))
        return None

    def _place_then(self, analysis: Analysis, path: str, place: Place) -> tuple[int, int]:
        """Returns line and column, counted from 1, of a place in the text that was analysed."""
        now = self.texts[path].plain
        then = analysis.text_of(path)
        moved = now.followed(place, then)
        return moved.line + 1, then.index(moved) - then.starts[moved.line] + 1

    def _symbol(self, analysis: Analysis, path: str, place: Place, name: str) -> Symbol | None:
        line, column = self._place_then(analysis, path, place)
        return analysis.symbols.at(path, line, column, name)

    def _macro(self, analysis: Analysis, name: str) -> Position | None:
        """Returns where a macro is defined."""
        definition = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+({re.escape(name)})\b", re.MULTILINE)
        for file in sorted(analysis.files):
            text = analysis.text_of(file)
            match = definition.search(text.content)
            if match:
                line = text.place(match.start(1)).line
                column = match.start(1) - text.starts[line]
                return Position(file, line + 1, column + 1, len(name))
        return None

    def _included(self, path: str, place: Place) -> Target | None:
        match = _INCLUDED.match(self.texts[path].line(place.line)) if path in self.texts else None
        if match is None:
            return None
        files = [file for analysis in self._analyses(path) for file in sorted(analysis.files)]
        name = os.path.normpath(match[1]).lstrip("./")
        target = next((file for file in files if file.endswith(f"/{name}")), None)
        return Target(target, Span(Place(0, 0), Place(0, 0))) if target is not None else None

    def _comment(self, analysis: Analysis, declaration: ast.Declaration | None) -> str:
        """Returns the lines of comment above a declaration."""
        if declaration is None:
            return ""
        place = declaration.position
        text = analysis.text_of(place.file)
        lines: list[str] = []
        for number in range(place.line - 2, max(-1, place.line - 2 - MAX_COMMENT_LINES), -1):
            match = _COMMENT.match(text.line(number))
            if match is None:
                break
            lines.insert(0, match[1])
        return "\n".join(lines)
