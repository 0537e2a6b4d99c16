"""The compiler from P4_16 (v1model) to BMv2 JSON and P4Info. It is run by
`python -m p4native.compiler prog.p4 -o prog.json`, and docs/interface.md shows how Python calls it.

The packages and modules build on each other in this order: source, diagnostics -> ast ->
preprocess, lexer, parser -> types, typed, check -> backend.
"""

from p4native.compiler.diagnostics import Diagnostics, render
from p4native.compiler.frontend import compile_file, with_deep_stack
from p4native.compiler.preprocess import Options

__all__ = ["Diagnostics", "Options", "compile_file", "render", "with_deep_stack"]
