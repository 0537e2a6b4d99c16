#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action send { std.egress_spec = 1; }
    apply { send(); }
}
