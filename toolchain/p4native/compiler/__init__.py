"""The compiler from P4_16 (v1model) to BMv2 JSON and P4Info. It is run by
`python -m p4native.compiler prog.p4 -o prog.json`.

The packages and modules build on each other in this order: source, diagnostics -> ast ->
preprocess, lexer, parser -> types, typed, check -> backend.
"""
