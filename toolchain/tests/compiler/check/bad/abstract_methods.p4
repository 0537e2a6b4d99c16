#include <core.p4>
extern V { V(); abstract bit<8> value(in bit<8> x); bit<8> own(in bit<8> x); }
extern W { W(); bit<8> own(in bit<8> x); }
V() v = { bit<8> value(in bit<8> x) { return x; } bit<8> other(in bit<8> x) { return x; } };
W() w = { bit<8> own(in bit<8> x) { return x; } };
control c(inout bit<8> x) {
    apply { x = this.own(x); }
}
control d(inout bit<8> x)(V inner) { apply { } }
control e(inout bit<8> x) {
    d(V()) i;
    apply { i.apply(x); }
}
