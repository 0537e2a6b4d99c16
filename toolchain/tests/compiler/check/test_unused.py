"""Which declarations are unused, and which only look as if they were."""

from __future__ import annotations

from collections.abc import Callable

Unused = Callable[[str], list[str]]


def test_all_kinds_in_one_program(unused_in: Unused) -> None:
    text = """
    extern memory { memory(bit<32> size); }
    const bit<8> SPARE = 1;
    typedef bit<9> spare_t;
    bit<8> spare_f(in bit<8> x) { bit<8> deep; return 1; }
    match_kind { exact }
    control c(inout bit<8> x, in bit<8> untold) {
        bit<8> local;
        memory(2) m;
        action set(in bit<8> y, bit<8> z) { x = 1; }
        action used(bit<8> y) { x = y; }
        table t { key = { x : exact; } actions = { used; } }
        table spare { key = { x : exact; } actions = { used; } }
        apply { t.apply(); }
    }
    """
    plain = ("SPARE", "spare_t", "spare_f", "deep", "local", "m", "set", "y", "z")
    assert set(unused_in(text)) == {
        *(f"'{name}'" for name in plain),
        "control 'c'",
        "table 'spare'",
    }


def test_uses_of_every_kind(unused_in: Unused) -> None:
    text = """
    extern memory { memory(bit<32> size); bit<8> get(); }
    const bit<32> SIZE = 4;
    typedef bit<8> byte_t;
    byte_t twice(in byte_t x) { return x + x; }
    control inner(inout byte_t x) { apply { x = twice(x); } }
    @noWarn("unused")
    control c(inout byte_t x) {
        memory(SIZE) m;
        inner() i;
        apply { i.apply(x); x = x + m.get(); inner.apply(x); }
    }
    """
    assert unused_in(text) == []


def test_what_the_includes_declare_is_not_ours_to_use(unused_in: Unused) -> None:
    assert unused_in("const bit<8> __version = 1;\nextern void log(in bit<8> unread);") == []


def test_an_assertion_is_there_for_its_effect(unused_in: Unused) -> None:
    assertion = "extern bool static_assert(bool check);"
    assert unused_in(f"{assertion} const bool fits = static_assert(2 > 1);") == []
