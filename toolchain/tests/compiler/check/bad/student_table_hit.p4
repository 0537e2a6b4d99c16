#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    table t {
        key = { hdr.h.a: exact; }
        actions = { drop; }
    }
    apply {
        if (t.hit) {
            meta.tag = 1;
        }
    }
}
