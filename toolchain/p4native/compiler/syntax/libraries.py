"""Finds out whether a program lacks the #include of a library that it uses. Without this check,
each use of the library would be an error of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from p4native.compiler.diagnostics import Diagnostics
from p4native.compiler.syntax.lexer import Token

# file -> its declarations that no program of its kind is without
LIBRARIES = {
    "v1model.p4": (("struct", "standard_metadata_t"), ("package", "V1Switch")),
    "core.p4": (("extern", "packet_in"), ("extern", "packet_out")),
}


def check_includes(tokens: Sequence[Token], diagnostics: Diagnostics) -> None:
    """Reports the first use of the first library that is used and not included."""
    declared = {(before.text, token.text) for before, token in pairwise(tokens)}
    for library, declarations in LIBRARIES.items():
        missing = {name for kind, name in declarations if (kind, name) not in declared}
        if len(missing) < len(declarations):
            continue
        use = next((token for token in tokens if token.text in missing), None)
        if use is not None:
            message = f"'{use.text}' is not declared: it belongs to {library}"
            diagnostics.error(use.position, message, f"#include <{library}>")
            return
