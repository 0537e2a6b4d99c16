"""Programs made smaller: what is left still shows what was asked for, and little else."""

from __future__ import annotations

from p4native.verification.random_programs import draw_case
from p4native.verification.random_programs.shrink import shrink_lines, shrink_program

PROGRAM = """one {
a = (x + (y * 3));
if (a == 1) {
b = 1;
} else {
wanted = ((bit<8>)(c - q));
}
}
two {
z = 4;
}
"""


def balanced(text: str) -> bool:
    return text.count("{") == text.count("}")


def test_only_what_the_test_asks_for_is_left() -> None:
    small = shrink_program(PROGRAM, lambda text: "wanted = " in text and "q" in text)
    assert balanced(small)
    assert "two" not in small and "b = 1" not in small
    assert small.splitlines() == ["wanted = q;"]


def test_braces_stay_in_balance() -> None:
    seen = []

    def test(text: str) -> bool:
        seen.append(text)
        return "z = 4" in text

    assert shrink_program(PROGRAM, test) == "z = 4;\n"
    assert all(map(balanced, seen))


def test_lines_that_need_each_other_stay() -> None:
    script = "".join(f"packet {n}\n" for n in range(40))
    small = shrink_lines(script, lambda text: "packet 3\n" in text and "packet 31\n" in text)
    assert small == "packet 3\npacket 31\n"


def test_a_random_program_shrinks_to_one_statement() -> None:
    program = draw_case(1).program
    small = shrink_program(program, lambda text: "packet.extract(hdr.h)" in text)
    assert small == "packet.extract(hdr.h);\n"
