"""From the syntax tree to a TypedProgram: names, types, constants, rules of P4_16."""
