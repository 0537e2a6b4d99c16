#include <core.p4>
header h_t { bit<8> a; }
extern E { E(); }
extern G<T> { G(); void m(in T x); }
match_kind { own }
const h_t nothing = {1};
E wrong() { return 1; }
void many(in h_t[0x7fffffff] s) { }
void pair(in tuple<E, bit<8>> t) { }
void variable(in own x) { }
control c(inout bit<8> x, G g) {
    apply { g.m(x); }
}
control d(inout bit<8> x)(bit<8> k) { apply { x = k; } }
control e(inout bit<8> x) { apply { d.apply(x); E.apply(); g(); } }
