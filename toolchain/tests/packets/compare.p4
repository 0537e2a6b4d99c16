// == != < <= > >= on unsigned values, && || ! on booleans.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<1> eq; bit<1> ne; bit<1> lt; bit<1> le; bit<1> gt; bit<1> ge; bit<1> both; bit<1> neither; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        h.d.eq = (bit<1>)(h.d.a == h.d.b);
        h.d.ne = (bit<1>)(h.d.a != h.d.b);
        h.d.lt = (bit<1>)(h.d.a < h.d.b);
        h.d.le = (bit<1>)(h.d.a <= h.d.b);
        h.d.gt = (bit<1>)(h.d.a > h.d.b);
        h.d.ge = (bit<1>)(h.d.a >= h.d.b);
        h.d.both = (bit<1>)(h.d.a > 1 && h.d.b > 1);
        h.d.neither = (bit<1>)!(h.d.a > 1 || h.d.b > 1);
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
