#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers { h_t h; }
struct others { h_t h; }
struct meta { }
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers h, inout meta m) { apply {} }
control I(inout others h, inout meta m, inout standard_metadata_t s) { apply {} }
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply {} }
control U(inout headers h, inout meta m) { apply {} }
control D(packet_out p, in headers h) { apply {} }
V1Switch(P(), V(), I(), E(), U(), D()) main;
