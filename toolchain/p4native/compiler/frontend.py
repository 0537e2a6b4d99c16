"""The front end: a function for each stage, from text to tokens, to the syntax tree and to the
typed program."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from p4native.compiler import ast
from p4native.compiler.check.checker import check
from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.preprocess import Options, preprocess
from p4native.compiler.source import NOWHERE
from p4native.compiler.syntax.lexer import Token, tokenize
from p4native.compiler.syntax.libraries import check_includes
from p4native.compiler.syntax.parser import parse
from p4native.compiler.typed import TypedProgram

# A tree is at most this deep (cursor.MAX_NESTING + MAX_OPERATORS) times the frames a pass needs for
# one level; before Python 3.11 each of those frames takes about half a kilobyte of C stack.
RECURSION_LIMIT = 60_000
STACK_BYTES = 256 << 20

T = TypeVar("T")
_this_thread = threading.local()


def parse_text(text: str, file: str, diagnostics: Diagnostics) -> ast.Program | None:
    """Returns the tree of preprocessed text, or None after errors."""
    return _on_deep_stack(lambda: _parse_text(text, file, diagnostics), file, diagnostics)


def check_text(text: str, file: str, diagnostics: Diagnostics) -> TypedProgram | None:
    """Returns the typed program of preprocessed text, or None after errors."""
    return _on_deep_stack(lambda: _check_text(text, file, diagnostics), file, diagnostics)


def compile_file(path: str, options: Options, diagnostics: Diagnostics) -> TypedProgram | None:
    """Returns the typed program of a P4 file, or None after errors, which are in diagnostics."""
    text = preprocess(path, options, diagnostics)
    return None if text is None else check_text(text, path, diagnostics)


def _parse_text(text: str, file: str, diagnostics: Diagnostics) -> ast.Program | None:
    tokens: list[Token] = tokenize(text, file, diagnostics)
    check_includes(tokens, diagnostics)
    if diagnostics.failed:
        return None
    tree = parse(tokens, diagnostics)
    return None if diagnostics.failed else tree


def _check_text(text: str, file: str, diagnostics: Diagnostics) -> TypedProgram | None:
    tree = _parse_text(text, file, diagnostics)
    if tree is None:
        return None
    program = check(tree, diagnostics)
    return None if diagnostics.failed else program


def _on_deep_stack(work: Callable[[], T | None], file: str, diagnostics: Diagnostics) -> T | None:
    try:
        return with_deep_stack(work)
    except RecursionError:
        diagnostics.error(NOWHERE, f"{file}: the program is nested too deeply")
        return None


def with_deep_stack(work: Callable[[], T]) -> T:
    """Calls `work` and returns its result. Runs it in a thread whose stack has room for the deepest
    tree that the parser accepts."""
    if getattr(_this_thread, "is_deep", False):
        return work()
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        _this_thread.is_deep = True
        try:
            results.append(work())
        except BaseException as failure:
            failures.append(failure)

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if failures:
        raise failures[0]
    return results[0]
