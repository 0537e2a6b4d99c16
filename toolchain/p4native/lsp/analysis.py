"""Analyses a program with the stages of the compiler. After errors, the analysis still has
everything that could be understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from p4native.compiler.backend import emit
from p4native.compiler.check.checker import check
from p4native.compiler.diagnostics import Diagnostic, Diagnostics
from p4native.compiler.frontend import with_deep_stack
from p4native.compiler.preprocess import Options
from p4native.compiler.source import NOWHERE, read_source
from p4native.compiler.syntax.lexer import tokenize
from p4native.compiler.syntax.libraries import check_includes
from p4native.compiler.syntax.parser import parse
from p4native.compiler.typed import TypedProgram
from p4native.lsp.sources import preprocessed
from p4native.lsp.symbols import Symbols, symbols_of
from p4native.lsp.text import Text

MAX_FILE_CHARACTERS = 1 << 20
MAX_MESSAGES = 200
"""Of one program; a person mends the first ones first."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is known about a program.

    path: the program's file. texts: the texts of open files that it was made from. files: all files
    of the program. understood: whether the whole text could be parsed.
    """

    path: str
    texts: Mapping[str, Text]
    diagnostics: tuple[Diagnostic, ...]
    files: frozenset[str]
    program: TypedProgram | None = None
    symbols: Symbols = field(default_factory=Symbols)
    understood: bool = False
    _on_disk: dict[str, Text] = field(default_factory=dict)

    def text_of(self, file: str) -> Text:
        """Returns the text of a file as it was analysed, or as it is on the disk."""
        if file in self.texts:
            return self.texts[file]
        if file not in self._on_disk:
            self._on_disk[file] = _read(file)
        return self._on_disk[file]


def _read(file: str) -> Text:
    try:
        return Text(read_source(file)).plain
    except OSError:
        return Text("")


def analysed(path: str, texts: Mapping[str, Text], options: Options) -> Analysis:
    """Analyses a program. path: its file. texts: the open files. Both name files by absolute paths
    without symbolic links."""
    plain = {name: text.plain for name, text in texts.items()}
    diagnostics = Diagnostics()
    try:
        return with_deep_stack(lambda: _analysed(path, plain, options, diagnostics))
    except RecursionError:
        return _without(path, plain, diagnostics, "the program is nested too deeply")
    except OSError as error:
        return _without(path, plain, diagnostics, str(error.strerror or error))


def _without(
    path: str, texts: Mapping[str, Text], diagnostics: Diagnostics, problem: str
) -> Analysis:
    diagnostics.error(NOWHERE, f"{path}: {problem}")
    return Analysis(path, texts, tuple(diagnostics.entries), frozenset([path]))


def _analysed(
    path: str, texts: Mapping[str, Text], options: Options, diagnostics: Diagnostics
) -> Analysis:
    contents = {name: text.content for name, text in texts.items()}
    if len(contents.get(path, "")) > MAX_FILE_CHARACTERS:
        limit = f"larger than {MAX_FILE_CHARACTERS >> 20} MB, and only the compiler checks it"
        return _without(path, texts, diagnostics, limit)
    text, files = preprocessed(path, contents, options, diagnostics)
    if text is None:
        return Analysis(path, texts, tuple(diagnostics.entries), files)
    tokens = tokenize(text, path, diagnostics, contents)
    check_includes(tokens, diagnostics)
    tree = parse(tokens, _quiet_after_errors(diagnostics))
    understood = not diagnostics.failed
    program = check(tree, _quiet_after_errors(diagnostics))
    if not diagnostics.failed:
        emit(program, diagnostics)
    entries = tuple(diagnostics.entries[:MAX_MESSAGES])
    return Analysis(path, texts, entries, files, program, symbols_of(program), understood)


def _quiet_after_errors(diagnostics: Diagnostics) -> Diagnostics:
    """Returns where a stage reports to. After errors of an earlier stage, its own ones would only
    be their consequences."""
    return Diagnostics() if diagnostics.failed else diagnostics
