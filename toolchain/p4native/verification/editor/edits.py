"""Random edits of a text, as the protocol describes them. The text is kept here in another way than
by the server, whose arithmetic of positions is to be judged."""

from __future__ import annotations

import random
import re
from typing import Any

_LINE_END = re.compile(r"\r\n|\r|\n")
_SCRAPS = (
    *("{", "}", "(", ")", "[", "]", "<", ">", ";", ",", ".", "=", "@", '"', "//", "/*", "*/"),
    *("\n", "\r\n", "\r", "\t", "\f", "\v", "\0", "\u2028", "\u0085", "\ud800", "é", "語", "🦆"),
    *("#define X(a) a a\n", '#include "x.p4"\n', "#if 0\n", "#endif\n", "#line 7\n", "hdr.", "1w"),
    *("control C(", "apply {", "table t {", "state s {", "bit<", "8w300", "if (", "else", "header"),
)
RESET_EVERY = 200


class Editor:
    """A text that changes at random. content: how it is now."""

    def __init__(self, content: str, seed: int) -> None:
        self.original = content
        self.content = content
        self.random = random.Random(seed)
        self.edits = 0

    def change(self) -> dict[str, Any]:
        """Changes the text, and returns the change for `textDocument/didChange`. At times the text
        becomes what it was at first."""
        self.edits += 1
        if self.edits % RESET_EVERY == 0:
            self.content = self.original
            return {"text": self.content}
        first, last = sorted((self._index(), self._index()))
        if self.random.random() < 0.9:
            last = self._whole(min(last, first + self.random.choice((0, 0, 0, 1, 5, 40))))
        return self.replaced(first, last, self._scrap())

    def replaced(self, first: int, last: int, text: str) -> dict[str, Any]:
        """Replaces what lies between two indices."""
        span = {"start": self.place(first), "end": self.place(last)}
        self.content = self.content[:first] + text + self.content[last:]
        return {"range": span, "text": text}

    def place(self, index: int) -> dict[str, int]:
        """Returns the protocol's name of an index: line, and character in units of UTF-16."""
        lines = _LINE_END.split(self.content[:index])
        units = len(lines[-1].encode("utf-16-le", "surrogatepass")) // 2
        return {"line": len(lines) - 1, "character": units}

    def somewhere(self) -> dict[str, int]:
        return self.place(self._index())

    def _index(self) -> int:
        return self._whole(self.random.randint(0, len(self.content)))

    def _whole(self, index: int) -> int:
        """Returns an index that does not part `\\r\\n`, which the protocol cannot name."""
        return index + (self.content[index - 1 : index + 1] == "\r\n")

    def _scrap(self) -> str:
        if self.random.random() < 0.3:
            return ""
        if self.random.random() < 0.3 and self.original:
            start = self.random.randrange(len(self.original))
            return self.original[start : start + self.random.choice((1, 10, 200))]
        return self.random.choice(_SCRAPS)
