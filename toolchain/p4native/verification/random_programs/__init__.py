"""Random well-typed v1model programs with packets, by seed: `draw_case(seed)`.

kinds (types and what is in scope) -> expressions -> statements -> controls, parser -> program.
`shrink` removes lines from a program as long as a test of the program holds.

Everything that the language and v1model define may occur. Undefined behavior does not occur, as
there is then nothing on which the compilers and switches could agree:

- reading a variable, an `out` parameter or a header's field before it has a value (statements that
  make a header valid set all its fields; fields of optional headers are read under `isValid()`);
- an index outside a stack, register or counter (indices are masked), and a divisor that is zero
  (divisors are combined with `| 1`) or negative;
- a shift by 2^16 or more, for which BMv2 needs as many bits of memory;
- times, queue depths, `random()`, meters with rates, and `packet_length` after headers were added;
- the order in which threads of BMv2 process copies of one packet: programs that resubmit,
  recirculate or clone have no registers, and packets are compared as a multiset for each port.

May import: nothing of ours.
"""

from p4native.verification.random_programs.program import PORTS, Case, draw_case
from p4native.verification.random_programs.shrink import shrink_lines, shrink_program

__all__ = ["PORTS", "Case", "draw_case", "shrink_lines", "shrink_program"]
