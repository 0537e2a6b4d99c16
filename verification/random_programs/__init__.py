"""Random well-typed v1model programs with packets, by seed: `draw_case(seed)`.

kinds (types and what is in scope) -> expressions -> statements -> controls, parser -> program.
`shrink` takes lines away from a program while something about it stays true.

Everything that the language and v1model define may occur. What is undefined does not, as there is
then nothing to agree on:
- reading a variable, an `out` parameter or a header's field before it has a value (whoever makes a
  header valid sets all its fields; fields of optional headers are read under `isValid()`);
- an index outside a stack, register or counter (masked); a divisor of zero (`| 1`), a negative one;
- a shift by 2^16 or more, for which BMv2 wants as many bits of memory;
- times, queue depths, `random()`, meters with rates, `packet_length` after headers were added;
- the order in which threads of BMv2 take copies of one packet: programs that resubmit, recirculate
  or clone have no registers, and packets are compared as a multiset for each port.
May import: nothing of ours.
"""

from agglab.verification.random_programs.program import Case, draw_case

__all__ = ["Case", "draw_case"]
