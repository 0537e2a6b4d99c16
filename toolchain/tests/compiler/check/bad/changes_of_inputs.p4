#include <core.p4>
header h_t { bit<8> a; }
extern E { E(); }
const E kept = E();
control inner(inout bit<8> x)(bit<8> k) { apply { x = k; } }
control c(inout bit<8> x, in h_t[2] s) {
    inner(1) fine;
    inner(2) with_methods = { bit<8> own() { return 1; } };
    apply {
        fine.apply();
        with_methods.apply(x);
        s.push_front(1);
        switch (1) { 1: { } }
    }
}
E made() { return E(); }
