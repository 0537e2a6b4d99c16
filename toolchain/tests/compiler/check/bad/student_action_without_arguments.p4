#include "student.inc"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action send(bit<9> port) { std.egress_spec = port; }
    apply {
        send();
    }
}
