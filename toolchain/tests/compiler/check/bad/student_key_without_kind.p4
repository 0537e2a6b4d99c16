#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    table t { key = { hdr.h.a; } actions = { NoAction; } }
    apply { t.apply(); }
}
