// @name on tables, actions, keys, registers; a control in a control gives dotted names.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> key; bit<8> result; }
#include "include/one_header.p4"

control Inner(inout headers_t h) {
    @name("cells") register<bit<8>>(2) r;
    @name("put") action set(bit<8> v) {
        h.d.result = v;
        r.write(1, v);
    }
    @name(".lookup") table t {
        key = { h.d.key: exact @name("the_key"); }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    apply { t.apply(); }
}

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    @name("deep") Inner() inner;
    apply { inner.apply(h); s.egress_spec = 1; }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
