"""The parser: from preprocessed text to tokens, and by recursive descent to the syntax tree."""
