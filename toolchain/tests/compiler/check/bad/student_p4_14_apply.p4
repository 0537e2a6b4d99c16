#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    table t { actions = { NoAction; } }
    apply {
        apply(t);
    }
}
