"""The checker: from the syntax tree to a TypedProgram, with names, types, constants and the rules
of P4_16."""
