// const entries: exact, lpm and ternary ones, the first that matches wins among ternary.
#include <core.p4>
#include <v1model.p4>

header data_t { bit<8> a; bit<8> b; bit<8> exact_out; bit<8> lpm_out; bit<8> ternary_out; }
#include "include/one_header.p4"

control Work(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action exact_set(bit<8> v) { h.d.exact_out = v; }
    action lpm_set(bit<8> v) { h.d.lpm_out = v; }
    action ternary_set(bit<8> v) { h.d.ternary_out = v; }
    table by_exact {
        key = { h.d.a: exact; h.d.b: exact; }
        actions = { exact_set; }
        const entries = {
            (1, 2): exact_set(0x12);
            (1, 3): exact_set(0x13);
        }
        const default_action = exact_set(0);
    }
    table by_prefix {
        key = { h.d.a: lpm; }
        actions = { lpm_set; }
        const entries = {
            0x80 &&& 0x80: lpm_set(1);
            0xc0 &&& 0xc0: lpm_set(2);
        }
        const default_action = lpm_set(0);
    }
    table by_mask {
        key = { h.d.a: ternary; h.d.b: ternary; }
        actions = { ternary_set; }
        const entries = {
            (0x01 &&& 0x0f, _): ternary_set(1);
            (_, 3): ternary_set(2);
            (0x80 &&& 0x80, 0): ternary_set(3);
        }
        const default_action = ternary_set(0);
    }
    apply {
        by_exact.apply();
        by_prefix.apply();
        by_mask.apply();
        s.egress_spec = 1;
    }
}
V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoCompute(), Emit()) main;
