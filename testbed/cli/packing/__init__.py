"""Implements `agglab pack` and `agglab repeat`: a pack is one file with a result, which a reviewer
can repeat."""
