"""From preprocessed text to the syntax tree: tokens, then recursive descent."""
