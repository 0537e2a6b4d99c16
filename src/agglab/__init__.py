"""Agglab as Python, type checkers and editors see it: links to the folders of code."""
