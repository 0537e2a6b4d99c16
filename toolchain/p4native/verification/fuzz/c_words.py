"""The tokens of the C code that Agglab generates from a P4 program, and the identifiers that
already have a meaning in that code."""

from __future__ import annotations

import re

from p4native.switch import RUNTIME

KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline
int long register restrict return short signed sizeof static struct switch typedef union
unsigned void volatile while _Alignas _Alignof _Atomic _Bool _Complex _Generic _Imaginary
_Noreturn _Static_assert _Thread_local asm typeof __asm__ __attribute__ __extension__ __inline
__restrict
"""
LIBRARY = """
NULL EOF errno stdin stdout stderr linux unix i386 true false bool offsetof assert main printf
malloc free memcpy memset memcmp memmove strlen abs div exit signal index rindex time size_t
ssize_t off_t uint8_t uint64_t int64_t INT32_MAX UINT64_C va_start va_list va_end va_arg
pthread_t log exp sin y0 j1 gamma alloca environ __FILE__ __LINE__ __func__ __COUNTER__
__linux__ __unix__ st_atime sa_handler si_pid h_errno s_addr __builtin_trap __data_start _start
_init _end
"""
LOCALS = """
p k s d e t h w a b args frame len at steps error bits key action member taken colour name v i n
from to next valid flow unused zeros wide number headers field_list start reversed metadata
number length store size key1 c1 t1 b1 i1 w1 h1 z1 done end state_start node_1 step_0 extract
emit copy same swap show p4 p4_ _p4_ p4_p4_x
"""
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_TOKEN = re.compile(
    r"\s+|/\*.*?\*/"
    r'|("(?:[^"\\]|\\[0-7]{3}|\\n)*"'
    r"|[A-Za-z_][A-Za-z0-9_]*"
    r"|\.?[0-9][A-Za-z0-9_.]*"
    r"|[-+*/%&|^~!<>=?:;,.(){}\[\]#])"
)
OWN = re.compile(r"(?:[A-Za-z0-9_]*?_)?p4_[A-Za-z0-9_]*\Z")
"""Identifiers that are made of a program's names."""


class TokenError(Exception):
    """Raised for text that is not a token of generated C."""


def line_tokens(line: str) -> list[str]:
    """Returns the tokens of a line, without comments."""
    found, at = [], 0
    while at < len(line):
        match = _TOKEN.match(line, at)
        if match is None:
            raise TokenError(f"no token at column {at + 1}")
        if match[1]:
            found.append(match[1])
        at = match.end()
    return found


def runtime_words() -> list[str]:
    """Returns all identifiers that occur in the runtime's headers."""
    found: set[str] = set()
    for path in RUNTIME.glob("*.h"):
        text = _STRINGS.sub(" ", _COMMENTS.sub(" ", path.read_text()))
        found.update(IDENTIFIER.findall(text))
    return sorted(found)


C_WORDS = sorted({*(KEYWORDS + LIBRARY + LOCALS).split(), *runtime_words()})
"""The words that a name could collide with."""
