"""The checker, which turns the syntax tree into a TypedProgram. It resolves names, finds types and
constants, and enforces the rules of P4_16."""
