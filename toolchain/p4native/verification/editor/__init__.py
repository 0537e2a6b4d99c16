"""Types into a program as an editor does, and measures how long the language server's answers take.

client: an editor's side of the protocol. edits: random edits. program: a program of any length.
"""

from p4native.verification.editor.command import main

__all__ = ["main"]
