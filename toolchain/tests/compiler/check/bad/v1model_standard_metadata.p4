#include <v1model.p4>
control c(inout standard_metadata_t s) {
    apply {
        s.egress_port_ = 1;
        mark_to_drop();
    }
}
