#include <core.p4>
extern E { E(); }
match_kind { own }
void taken(in bit<8> x) { }
void given(out bit<8> x) { x = 1; }
void any<T>(in T x) { }
void either(in bit<8> x) { }
void either(in int<8> x) { }
control c(inout bit<8> x) {
    apply {
        taken(_);
        any(own);
        either(1);
        given(_);
    }
}
