"""The parser. It turns preprocessed text into tokens, and tokens into the syntax tree (by recursive
descent)."""
